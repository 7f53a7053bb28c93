package runner

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/daybook-run/daybook"
)

// Names of the files of an attempt.
const (
	lockFile    = "lock"      // locked as long as anything that the attempt started is alive
	metaFile    = "meta.json" // what was started: meta
	resultFile  = "result"    // the report of the work, written by the work
	payloadFile = "payload"   // what a caller gave
)

// meta says what was started in a directory. Pid and what follows are missing if Daybook was killed between the start
// and their being written.
type meta struct {
	Key     daybook.Key `json:"key"`
	Fence   int64       `json:"fence"`
	Attempt int         `json:"attempt"`
	By      int         `json:"by"`                 // the pid of the Daybook that starts it, and
	BySince uint64      `json:"by_since,omitempty"` // when that one started
	Pid     int         `json:"pid,omitempty"`
	Pgid    int         `json:"pgid,omitempty"`
	Start   uint64      `json:"start,omitempty"` // ticks since boot
	Boot    string      `json:"boot_id,omitempty"`
}

// starterAway reports whether the Daybook that started the attempt is this one, or is no more. As long as it is another
// that lives, it may be about to start something, and hold the lock itself.
func (m meta) starterAway() bool {
	return m.By == os.Getpid() || !sameProcess(m.By, m.BySince, m.Boot)
}

// place is the directory of one attempt, with its lock held.
type place struct {
	dir  string
	temp bool // ours to remove
	lock *os.File
}

// openPlace makes the directory of an attempt, locks it and writes down whose it is. It refuses, with CodeConflict, one
// in which something is still alive: nothing is ever started beside it.
func openPlace(o daybook.Order, as identity) (*place, error) {
	p, err := makePlace(o.Dir)
	if err != nil {
		return nil, unavailable(err, "make the directory of the attempt")
	}
	if err := p.furnish(o, as); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func makePlace(dir string) (*place, error) {
	if dir == "" {
		dir, err := os.MkdirTemp("", "daybook-")
		return &place{dir: dir, temp: true}, err
	}
	dir, err := filepath.Abs(dir) // the command has another working directory
	if err != nil {
		return nil, err
	}
	return &place{dir: dir}, os.MkdirAll(dir, 0o700)
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

func (p *place) furnish(o daybook.Order, as identity) error {
	lock, err := os.OpenFile(p.path(lockFile), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return unavailable(err, "open the lock of the attempt")
	}
	p.lock = lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return daybook.Conflict("what an earlier try started is still alive in %s", p.dir)
		}
		return unavailable(err, "lock the directory of the attempt")
	}
	if err := os.Remove(p.path(resultFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unavailable(err, "remove an old result")
	}
	if err := p.writeMeta(metaOf(o)); err != nil {
		return unavailable(err, "write down the attempt")
	}
	if len(o.Run.Input) > 0 {
		if err := os.WriteFile(p.path(payloadFile), o.Run.Input, 0o600); err != nil {
			return unavailable(err, "write the payload")
		}
	}
	if as.credential != nil {
		return p.lend(o, as.credential)
	}
	return nil
}

// lend lets another user reach what is theirs: the payload and the result, and nothing that Daybook later believes
// about processes.
func (p *place) lend(o daybook.Order, c *syscall.Credential) error {
	f, err := os.OpenFile(p.path(resultFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return unavailable(err, "make the result file")
	}
	err = errors.Join(f.Chown(int(c.Uid), int(c.Gid)), f.Close(), os.Chmod(p.dir, 0o711))
	if len(o.Run.Input) > 0 {
		err = errors.Join(err, os.Chown(p.path(payloadFile), int(c.Uid), int(c.Gid)))
	}
	if err != nil {
		return unavailable(err, "hand the files of the attempt to user %s", quote(o.Job.User))
	}
	return nil
}

// started completes what is written down and gives the lock away: from here on the command and its children hold it.
func (p *place) started(o daybook.Order, c *process) {
	p.unhold()
	// Without this line the attempt is still found alive by its lock, so a full disk is no reason to end it.
	m := metaOf(o)
	m.Pid, m.Pgid, m.Start = c.pgid, c.pgid, c.begun
	_ = p.writeMeta(m)
}

func metaOf(o daybook.Order) meta {
	m := meta{Key: o.Run.Key, Fence: o.Fence, Attempt: o.Attempt, By: os.Getpid()}
	m.BySince, m.Boot = processIdentity(m.By)
	return m
}

// unhold closes our copy of the lock, and waits until no process that is just being started by somebody else has one,
// between its fork and its exec: otherwise a command that ends at once would seem to live on for that moment.
func (p *place) unhold() {
	if p.lock == nil {
		return
	}
	_ = p.lock.Close()
	p.lock = nil
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock() // the waiting is all
}

// close lets go of the place. A directory given by the order stays, for whoever asks about the attempt later.
func (p *place) close() {
	p.unhold()
	if p.temp {
		_ = os.RemoveAll(p.dir)
	}
}

// writeMeta replaces the file.
func (p *place) writeMeta(m meta) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return writeWhole(p.dir, metaFile, b)
}

// writeWhole replaces a file durably: a reader finds the old one or the new one.
func writeWhole(dir, name string, line []byte) error {
	path := filepath.Join(dir, name)
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func readMeta(dir string) (meta, bool) {
	var m meta
	b, err := os.ReadFile(filepath.Join(dir, metaFile))
	return m, err == nil && json.Unmarshal(b, &m) == nil
}

// Alive reports whether anything that was started in dir still runs. It looks at the lock that the command and all its
// children hold, and at the command itself, since some programs (sudo) close what they inherit. Known is false when dir
// has no lock: nothing was started there.
func (e *Exec) Alive(dir string) (alive, known bool) {
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return false, false
	}
	defer lock.Close()
	// Shared, so that two who ask at once do not take each other for the work.
	switch err := syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return true, true
	case err != nil:
		return false, false
	}
	// Unlocked by name: a process that is just being started may have a copy of the descriptor for a moment.
	_ = syscall.Flock(int(lock.Fd()), syscall.LOCK_UN)
	m, _ := readMeta(dir)
	return sameProcess(m.Pid, m.Start, m.Boot), true
}

// Report returns the report that the work left in dir: a complete result file that gives an outcome. Work that is still
// alive may yet replace it, so ask Alive first.
func (e *Exec) Report(dir string) (daybook.Outcome, bool) {
	out, err := readReport(filepath.Join(dir, resultFile))
	if out.Result == "" {
		return daybook.Outcome{}, false
	}
	out.Detail = "result file"
	if err != nil {
		out.Detail += "; " + err.Error()
	}
	if out.Result == daybook.ResultDone {
		out.Detail, out.Error = withMessage(out.Detail, out.Error), ""
	}
	return heedUnbegun(dir, out), true
}

// KeepEnd leaves how the work in dir ended as its report, unless the work left one itself: for whoever settles the attempt when the ledger
// is back. What nobody could read as a report is not left: nobody reported then.
func (e *Exec) KeepEnd(dir string, o daybook.Outcome) error {
	if _, ok := e.Report(dir); ok || !o.Result.Reported() {
		return nil
	}
	report := map[string]any{"outcome": o.Result}
	if message := daybook.Clip(o.Error, daybook.MaxErrorBytes); message != "" {
		report["message"] = message
	}
	if len(o.Data) > 0 && len(o.Data) <= daybook.MaxResultBytes/2 && json.Valid(o.Data) {
		report["result"] = o.Data
	}
	if len(o.Counts) > 0 {
		report["effects"] = o.Counts
	}
	if o.RetryAfter > 0 {
		report["retry_after"] = o.RetryAfter.String()
	}
	b, err := json.Marshal(report)
	if err != nil {
		return err
	}
	return writeWhole(dir, resultFile, b)
}

// End ends what runs in dir: TERM, and KILL after Grace. It signals only what is proven to have been started there: the
// group of the command while that is alive, and whoever holds the lock. Possible results:
//
//  1. nil: nothing runs there any more, or never did
//  2. CodeConflict: something runs there, and nothing is proven to be it (always so without /proc)
//  3. CodeUnavailable: it did not end, or ctx was cancelled first
func (e *Exec) End(ctx context.Context, dir string) error {
	o := e.withDefaults()
	for _, step := range []struct {
		sig  syscall.Signal
		wait time.Duration
	}{{syscall.SIGTERM, o.Grace}, {syscall.SIGKILL, o.giveUp()}} {
		if alive, _ := e.Alive(dir); !alive {
			return nil
		}
		if err := signalSurvivors(dir, step.sig); err != nil {
			return err
		}
		if err := e.waitFor(ctx, dir, step.wait); err != nil {
			return err
		}
	}
	if alive, _ := e.Alive(dir); !alive {
		return nil
	}
	return unavailable(nil, "what runs in %s did not end", dir)
}

// waitFor waits until nothing is alive in dir, at most limit. The error is that of ctx.
func (e *Exec) waitFor(ctx context.Context, dir string, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if alive, _ := e.Alive(dir); !alive {
			return nil
		}
		select {
		case <-tick.C:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return unavailable(context.Cause(ctx), "end what runs in %s", dir)
		}
	}
}

// signalSurvivors sends a signal to what was started in dir.
func signalSurvivors(dir string, sig syscall.Signal) error {
	// Nothing is started here meanwhile: between fork and exec a new process has a copy of all that we have open, and
	// would be taken for a child of the attempt.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	m, _ := readMeta(dir)
	group := sameProcess(m.Pid, m.Start, m.Boot)
	found := group
	for pid, pgid := range holders(filepath.Join(dir, lockFile)) {
		if pgid == m.Pgid && m.Pgid > 0 {
			group, found = true, true
		} else if m.starterAway() { // it left the group, but took the lock with it
			_ = syscall.Kill(pid, sig)
			found = true
		}
	}
	if group {
		_ = syscall.Kill(-m.Pgid, sig)
		_ = syscall.Kill(-m.Pgid, syscall.SIGCONT)
	}
	if found {
		return nil
	}
	if alive, _ := (&Exec{}).Alive(dir); !alive { // it ended while we looked
		return nil
	}
	return daybook.Conflict("something runs in %s, and nothing proves which process it is", dir).
		WithHint("see who holds %s (lsof, fuser), and end it by hand", filepath.Join(dir, lockFile))
}

// Clean removes the directory of an attempt. It refuses, with CodeConflict, one in which something is alive, and, with
// CodeInvalid, one that is not the directory of an attempt.
func (e *Exec) Clean(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	alive, known := e.Alive(dir)
	if !known {
		return daybook.Invalid("%s is not the directory of an attempt", dir)
	}
	if alive {
		return daybook.Conflict("something that was started in %s is still alive", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return unavailable(err, "remove the directory of an attempt")
	}
	return nil
}
