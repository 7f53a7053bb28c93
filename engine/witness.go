package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/loop"
)

// witness keeps, in files outside the ledger, how far the ledger had come: each line is something that the ledger
// acknowledged. A ledger that knows less than that was put back to an earlier state.
//
// A line is written after the ledger has acknowledged, and before what was marked begun is begun. It is on the disk with the
// next beat: what a power cut takes from the witness is no older than that.
type witness struct {
	log *slog.Logger

	mu    sync.Mutex
	files []string
	told  bool // that it cannot be written
}

// witnessLimit is how many bytes of lines are kept before they are folded into one.
const witnessLimit = 64 << 10

// witnessLine is one line of a witness.
type witnessLine struct {
	Ledger   string    `json:"ledger"`
	Lapse    int64     `json:"lapse,omitempty"`
	Sequence int64     `json:"sequence,omitempty"`
	Node     string    `json:"node,omitempty"`
	Mark     int64     `json:"mark,omitempty"`
	At       time.Time `json:"at,omitzero"`
	Mixed    bool      `json:"mixed,omitempty"`
}

// linesOf writes what was seen as lines.
func linesOf(s daybook.Seen) []byte {
	var b bytes.Buffer
	add := func(l witnessLine) {
		text, err := json.Marshal(l)
		if err != nil {
			return // it has neither maps nor pointers
		}
		b.Write(append(text, '\n'))
	}
	for n, m := range s.Marks {
		add(witnessLine{s.Ledger, s.Lapse, s.Sequence, n, m.Number, m.At, s.Mixed})
	}
	if b.Len() == 0 {
		add(witnessLine{Ledger: s.Ledger, Lapse: s.Lapse, Sequence: s.Sequence, Mixed: s.Mixed})
	}
	return b.Bytes()
}

// readSeen reads lines about one ledger. A line that is not whole, or about another, is passed over.
func readSeen(text []byte, ledger string) daybook.Seen {
	var seen daybook.Seen
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		var l witnessLine
		if json.Unmarshal(lines.Bytes(), &l) != nil || l.Ledger != ledger {
			continue
		}
		one := daybook.Seen{Ledger: l.Ledger, Lapse: l.Lapse, Sequence: l.Sequence, Mixed: l.Mixed}
		if l.Node != "" {
			one.Marks = map[string]daybook.Mark{l.Node: {Node: l.Node, Number: l.Mark, At: l.At}}
		}
		seen.Add(one)
	}
	return seen
}

// seen is what all files say of a ledger.
func (w *witness) seen(ledger string) daybook.Seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, err := readWitness(ledger, w.files)
	if err != nil {
		w.log.Warn("the witness of the ledger cannot be read", "err", err)
	}
	return all
}

// ReadWitness returns what files say of a ledger; those that cannot be read say nothing.
func ReadWitness(ledger string, files ...string) daybook.Seen {
	all, _ := readWitness(ledger, files)
	return all
}

func readWitness(ledger string, files []string) (all daybook.Seen, err error) {
	all = daybook.Seen{Ledger: ledger}
	for _, path := range files {
		text, fault := os.ReadFile(path)
		switch {
		case fault == nil:
			all.Add(readSeen(text, ledger))
		case !errors.Is(fault, fs.ErrNotExist):
			err = errors.Join(err, fault)
		}
	}
	return all, err
}

// note writes down what the ledger acknowledged; a beat, which has a sequence, is written to the disk. A witness that cannot
// be written stands in nobody's way, and is told once.
func (w *witness) note(s daybook.Seen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var faults []error
	for _, path := range w.files {
		faults = append(faults, addTo(path, s, s.Sequence > 0))
	}
	err := errors.Join(faults...)
	if err != nil && !w.told {
		w.log.Warn("the witness of the ledger cannot be written: an older copy in its place would not be found", "err", err)
	}
	w.told = err != nil
}

// addTo adds what was seen to a file, and folds a long one.
func addTo(path string, s daybook.Seen, sync bool) (err error) {
	f, err := lockWitness(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(linesOf(s)); err != nil {
		return err
	}
	if sync {
		err = f.Sync()
	}
	if info, ferr := f.Stat(); err == nil && ferr == nil && info.Size() > witnessLimit {
		return fold(path, s.Ledger)
	}
	return err
}

// lockWitness opens a file to add to it, and keeps others out until it is closed. One that was folded meanwhile is opened anew.
func lockWitness(path string) (*os.File, error) {
	for {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		mine, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if named, err := os.Stat(path); err == nil && os.SameFile(mine, named) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

// fold puts one line for each node in place of all lines about a ledger. Its caller holds the lock.
func fold(path, ledger string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	seen := readSeen(text, ledger)
	newest := time.Time{}
	for _, m := range seen.Marks {
		if m.At.After(newest) {
			newest = m.At
		}
	}
	for n, m := range seen.Marks { // the ledger has dropped those nodes, too
		if newest.Sub(m.At) > daybook.MarksKept {
			delete(seen.Marks, n)
		}
	}
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(linesOf(seen))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// WitnessOf is the witness beside the file of a SQLite ledger.
func WitnessOf(path string) string { return path + "-witness" }

// watch makes the files of the ledger known, and tells the store what they say: beside a SQLite file, and in the folder of this
// host. It is an error when the ledger was just made in the place of another, as where the file was lost: it would begin anew,
// and do everything again.
func (e *Engine) watch(ctx context.Context) error {
	info, err := e.store.Info(ctx)
	if err != nil {
		return err
	}
	e.witness.mu.Lock()
	if strings.HasPrefix(strings.ToLower(info.Database), "sqlite") && info.Place != "" {
		e.place = info.Place
		e.witness.files = append(e.witness.files, WitnessOf(info.Place))
		if err := e.another(ctx, info); err != nil {
			e.witness.mu.Unlock()
			return err
		}
	}
	if e.o.WitnessDir != "" {
		e.witness.files = append(e.witness.files, filepath.Join(e.o.WitnessDir, info.ID))
	}
	e.witness.mu.Unlock()
	return e.remember(ctx)
}

// another tells when the witness beside a ledger in which nobody has worked yet is that of another ledger only.
func (e *Engine) another(ctx context.Context, info daybook.LedgerInfo) error {
	stands, err := e.store.Seen(ctx)
	if err != nil || len(stands.Marks) > 0 || stands.Lapse > 0 {
		return err
	}
	path := WitnessOf(info.Place)
	text, err := os.ReadFile(path)
	if err != nil { // there was none before, or it cannot be read, which is told elsewhere
		return nil
	}
	var last time.Time
	for line := range bytes.Lines(text) {
		var l witnessLine
		if json.Unmarshal(line, &l) != nil {
			continue
		}
		if l.Ledger == info.ID {
			return nil
		}
		if l.At.After(last) {
			last = l.At
		}
	}
	if last.IsZero() {
		return nil
	}
	return daybook.New(daybook.CodeUnavailable, "the ledger %s is empty, and another stood here that was at work until %s", info.Place, last.UTC().Format(time.RFC3339)).
		WithHint("put it back: daybook db restore FILE; to begin anew, where nothing that was done is known, remove %s", path)
}

// remember tells the store what the witness saw, unless the ledger has another lapse since: what was known then is not what
// is known now.
func (e *Engine) remember(ctx context.Context) error {
	stands, err := e.store.Seen(ctx)
	if err != nil {
		return err
	}
	saw := e.witness.seen(stands.Ledger)
	if saw.Lapse != stands.Lapse {
		saw = daybook.Seen{Ledger: stands.Ledger, Lapse: stands.Lapse}
	}
	e.store.Remember(saw)
	return nil
}

// recall compares the ledger with its witness, and records a lapse when it knows less than it did. It is called before
// anything is planned or claimed, and whenever a write finds the ledger without what it had acknowledged.
func (e *Engine) recall(ctx context.Context, now time.Time) error {
	info, err := e.store.Info(ctx)
	if err != nil {
		return err
	}
	// The witness first: what others add to it while the ledger is read is no proof.
	saw := e.witness.seen(info.ID)
	saw.Add(e.store.Remembered())
	stands, err := e.store.Seen(ctx)
	if err != nil {
		return err
	}
	if saw.Mixed && stands.Lapse <= saw.Lapse {
		return errMixed(e.place)
	}
	lapse, forgot := stands.Forgot(saw, now)
	if forgot {
		lapse.Node = e.node.ID
		act := daybook.Activity{At: now, Actor: "daybook", Action: "found that the ledger forgot", Note: lapse.Detail}
		put, err := e.store.PutLapse(ctx, lapse, act)
		if err != nil {
			return err
		}
		if put {
			e.o.Log.Error("the ledger forgot: what may happen once only is frozen", "since", lapse.Since, "detail", lapse.Detail, "hint", "daybook freeze list")
		}
		if stands, err = e.store.Seen(ctx); err != nil {
			return err
		}
		e.witness.note(stands)
	}
	if saw.Lapse < stands.Lapse {
		e.store.Remember(stands)
	}
	e.doubtful.Store(false)
	ring(e.wakeDoubts)
	return nil
}

// errMixed is the error of a SQLite file that was written over while it was worked on. Its log goes on as if nothing had happened,
// so that some pages are of one time and some of another.
func errMixed(place string) error {
	return daybook.New(daybook.CodeUnavailable, "the file of the ledger %s was written over while it was worked on: what is in it is mixed", place).
		WithHint("put a whole copy in its place: daybook db restore FILE")
}

// Mixed notes that the file of a SQLite ledger was written over while it was worked on: nobody begins to work on it before it is
// restored. It returns the error that says so.
func (e *Engine) Mixed() error {
	saw := e.store.Remembered()
	e.witness.note(daybook.Seen{Ledger: saw.Ledger, Lapse: saw.Lapse, Mixed: true})
	return errMixed(e.place)
}

func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// forgot notes that a write found the ledger without what it had acknowledged. It is called in the middle of that write.
func (e *Engine) forgot() {
	e.doubtful.Store(true)
	ring(e.wakeRecall)
}

// recalling is the loop that looks at the ledger when a write found that it forgot, and decides what can be decided while its
// freeze stands.
func (e *Engine) recalling() []loop.Item {
	return []loop.Item{
		{Name: "recall", Every: beatEvery, Wake: e.wakeRecall, Service: service(func(ctx context.Context, now time.Time) (bool, error) {
			if !e.doubtful.Load() {
				return false, nil
			}
			return false, e.recall(ctx, now)
		})},
		{Name: "doubts", Every: beatEvery, Wake: e.wakeDoubts, Service: service(func(ctx context.Context, now time.Time) (bool, error) {
			if e.store.Remembered().Lapse == 0 { // as the last beat said
				return false, nil
			}
			return e.doubts.Tick(ctx, now)
		})},
	}
}
