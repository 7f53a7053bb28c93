package crash

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/internal/gateway"
)

// renewScript is work in steps: a charge, a row, and a mail of which nobody can be asked. It can be stopped at every line.
const renewScript = `set -eu
gate() {
  exec 9<>"/dev/tcp/${DAYBOOK_CRASH_GATE%:*}/${DAYBOOK_CRASH_GATE#*:}"
  printf '%s %s %s\n' "$DAYBOOK_KEY" "$1" $$ >&9
  read -r _ <&9
  exec 9>&-
}
ask() { if [ "$1" = paid ]; then printf %s "$ME ask-far"; fi; }
gate before-charge
"$BIN" effect charge --probe "$(ask "$DAYBOOK_JOB")" --settles 1s --undo "$ME far undo" -- "$ME" far charge
gate after-charge
"$BIN" step extend -- "$ME" far extend
gate after-extend
"$BIN" effect mail --undo "$ME far sorry" -- "$ME" far mail
gate after-mail
`

// boundaryJobs: of a job paid the far side can be asked about charges and refunds, of bare about nothing.
const boundaryJobs = `
  paid: {priority: P0, effects: once, window: day, steps: true, overlap: allow, run: [bash, SCRIPT], probe: [ME, ask-far], probe_undo: true, settles: 1s,
    retry: {backoff: [1s, 1s, 1s, 1s], jitter: 0%}}
  bare: {priority: P0, effects: once, window: day, steps: true, overlap: allow, run: [bash, SCRIPT],
    retry: {backoff: [1s, 1s, 1s, 1s], jitter: 0%}}
slots: {live: 64}
`

// Where work can be when somebody is killed.
var (
	scriptPoints = []string{"before-charge", "after-charge", "after-extend", "after-mail"}
	effectPoints = []string{"charge-begun", "charge-sent", "charge-answered", "extend-begun", "extend-answered", "mail-begun", "mail-sent", "mail-answered"}
	barePoints   = []string{"charge-begun", "charge-sent", "charge-answered"}
	undoPoints   = []string{"undo-begun", "undo-sent", "undo-answered"}
)

// boundary is one key, and where its work is when somebody is killed.
type boundary struct {
	key, job, point string
	unknown         bool // nobody is left who knows how an effect ended, and nobody can be asked
	letters         int  // that a person decided
}

func (b *boundary) undoes() bool { return strings.HasPrefix(b.point, "undo-") }

// boundaries is a world whose work can be stopped anywhere.
type boundaries struct {
	*world
	*line
	day time.Time
	all []*boundary
	// busyElsewhere reports whether somebody works for a key of whom the processes here do not tell; nil: nobody.
	busyElsewhere func(key string) bool
}

func newBoundaries(w *world) *boundaries {
	b := &boundaries{world: w, line: newLine(w.t, newGate(w.t), w.gateway), day: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	script := filepath.Join(w.dir, "renew.sh")
	text, err := os.ReadFile(w.config)
	if err == nil {
		err = os.WriteFile(w.config, []byte(strings.ReplaceAll(string(text), "SCRIPT", script)), 0o600)
	}
	if err == nil {
		err = os.WriteFile(script, []byte(renewScript), 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.extra = []string{envGate + "=" + b.addr, envFar + "=" + b.line.url, "ME=" + w.me, "BIN=" + binary}
	return b
}

// desk is what a person does, in a process of his own.
func (w *world) desk(do func(*control.Control)) {
	w.t.Helper()
	db := w.handles()
	defer func() { _ = db.Write.Close(); _ = db.Read.Close() }()
	e, err := engine.Open(w.t.Context(), db, engine.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	defer e.Close()
	do(e.Control())
}

var ops = control.Person{Name: "ops"}

// add makes a key whose work will stop at a point.
func (b *boundaries) add(job, point string, unknown bool) *boundary {
	b.day = b.day.AddDate(0, 0, 1)
	n := &boundary{key: job + ":" + b.day.Format(time.DateOnly), job: job, point: point, unknown: unknown}
	b.all = append(b.all, n)
	switch point {
	case "asked":
		b.drop[n.key] = true
	case "ladder":
		b.busy[n.key] = true
	}
	return n
}

// stops begins the work of keys and returns when each stands at its point: those at a gate as short as can be, since whoever
// waits there has his own patience, and those that wait for their next try at the very end.
func (b *boundaries) stops(keys []*boundary) {
	b.t.Helper()
	b.desk(func(c *control.Control) {
		begin := func(which func(*boundary) bool) {
			for _, n := range keys {
				if !which(n) {
					continue
				}
				if !n.undoes() {
					b.arm(n.key, n.point)
				}
				if _, err := c.Trigger(b.t.Context(), ops, control.Request{Job: n.job, Window: strings.TrimPrefix(n.key, n.job+":")}); err != nil {
					b.t.Fatal(err)
				}
			}
		}
		ladder := func(n *boundary) bool { return n.point == "ladder" }
		begin((*boundary).undoes)
		for _, n := range keys {
			if n.undoes() {
				b.ends(n.key, daybook.Done)
			}
		}
		begin(func(n *boundary) bool { return !n.undoes() && !ladder(n) })
		for _, n := range keys {
			if !n.undoes() {
				continue
			}
			b.arm(n.key, n.point)
			if _, err := c.Undo(b.t.Context(), ops, daybook.Key(n.key), "wrong price"); err != nil {
				b.t.Fatal(err)
			}
		}
		for _, n := range keys {
			if !ladder(n) {
				b.comes(n)
			}
		}
		begin(ladder)
		for _, n := range keys {
			if ladder(n) {
				b.until(n.key+" waits", func() bool {
					state, reason := b.state(n.key)
					return state == daybook.Retryable && reason == daybook.ReasonRetry
				})
			}
		}
	})
}

// comes waits until the work of a key stands at its point.
func (b *boundaries) comes(n *boundary) {
	b.t.Helper()
	v := b.visit(n.key)
	b.until(n.key+" at "+n.point, func() bool {
		select {
		case <-v.here:
			return true
		default:
			return false
		}
	})
}

// answered lets commands that have their answer end, before who started them hears of it. It returns who was stopped for that.
func (b *boundaries) answered(keys []*boundary, s *served) (stopped []int) {
	for _, n := range keys {
		if !strings.HasSuffix(n.point, "-answered") {
			continue
		}
		v := b.visit(n.key)
		parent := v.effect
		if n.undoes() {
			parent = s.pid()
		}
		_ = syscall.Kill(parent, syscall.SIGSTOP)
		b.until("who started it stands still", func() bool { state, _ := stat(parent); return state == 'T' })
		stopped = append(stopped, parent)
		close(v.open)
		b.until("the command has ended", func() bool { state, _ := stat(v.pid); return state == 'Z' || state == 0 })
	}
	return stopped
}

// release lets everybody go on who is left.
func (b *boundaries) release(keys []*boundary, stopped []int) {
	for _, n := range keys {
		if v := b.visit(n.key); v != nil && !strings.HasSuffix(n.point, "-answered") {
			close(v.open)
		}
	}
	for _, pid := range stopped {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

// settle waits until each key is done, or undone. Where a person is needed, the far side's book is looked into, once nothing of
// the key is alive any more: a person is asked only where nobody else could know.
func (b *boundaries) settle(keys []*boundary) {
	b.t.Helper()
	b.desk(func(c *control.Control) {
		left := slices.Clone(keys)
		defer func() {
			if len(left) > 0 {
				b.t.Logf("%s, killed at %s, is not settled", left[0].key, left[0].point)
				b.story(left[0].key)
			}
		}()
		b.until("all are settled", func() bool {
			left = slices.DeleteFunc(left, func(n *boundary) bool { return b.settled(c, n) })
			return len(left) == 0
		})
		for _, n := range keys {
			if want := n.unknown; (n.letters > 0) != want {
				b.t.Errorf("%s, killed at %s: a person was asked %d times", n.key, n.point, n.letters)
				b.story(n.key)
				if n.undoes() {
					b.story(n.key + "~undo")
				}
			}
		}
	})
}

func (b *boundaries) settled(c *control.Control, n *boundary) bool {
	b.t.Helper()
	state, reason := b.state(n.key)
	under := n.key
	if n.undoes() {
		if state == daybook.Done && reason == daybook.ReasonUndone {
			return true
		}
		under = n.key + "~undo"
		state, _ = b.state(under)
	} else if state == daybook.Done {
		return true
	}
	if state != daybook.Dead || b.working(under) || b.busyElsewhere != nil && b.busyElsewhere(under) {
		return false
	}
	r, err := c.Run(b.t.Context(), daybook.Key(under))
	if err != nil {
		b.t.Fatal(err)
	}
	if r.State != daybook.Dead || r.Letter.State != daybook.LetterOpen {
		return false // settled meanwhile
	}
	if r.Letter.Kind != daybook.LetterUnknown {
		b.t.Fatalf("%s: a letter of kind %s: %s", under, r.Letter.Kind, r.LastError)
	}
	if _, _, alerts := b.letter(under); alerts != 1 {
		b.t.Errorf("%s: %d alerts for its letter", under, alerts)
	}
	if _, err := c.Undo(b.t.Context(), ops, daybook.Key(n.key), "too early"); daybook.CodeOf(err) != daybook.CodeConflict {
		b.t.Errorf("%s: undone while an outcome is unknown: %v", n.key, err)
	}
	for _, e := range r.OpenSteps() {
		as := daybook.AsNotDone
		if b.happened(n, e.Step) {
			as = daybook.AsDone
		}
		if _, err := c.Resolve(b.t.Context(), ops, r.Key, control.Word{Step: e.Step, As: as, Attempt: r.Attempts}, "looked"); err != nil {
			b.t.Fatal(err)
		}
	}
	n.letters++
	return false
}

// happened looks into the books outside.
func (b *boundaries) happened(n *boundary, step string) bool {
	switch {
	case step == "mail" && n.undoes():
		return b.count(b.sorry, n.key) > 0
	case step == "mail":
		return b.count(b.mails, n.key) > 0
	}
	charges, refunds := b.booked(n.key)
	if n.undoes() {
		return refunds > 0
	}
	return charges > 0
}

// booked is how often a key was charged and refunded.
func (b *boundaries) booked(key string) (charges, refunds int) {
	b.t.Helper()
	lines, err := gateway.ReadBook(b.book)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, l := range lines {
		switch {
		case l.Customer+":"+l.Day != key:
		case l.Kind == gateway.KindCharge && l.Status == gateway.Charged:
			charges++
		case l.Kind == gateway.KindRefund:
			refunds++
		}
	}
	return charges, refunds
}

// judge compares what is told of the keys with the books outside.
func (b *boundaries) judge() {
	b.t.Helper()
	b.desk(func(c *control.Control) {
		for _, n := range b.all {
			charges, refunds := b.booked(n.key)
			mails, sorry := b.count(b.mails, n.key), b.count(b.sorry, n.key)
			back := 0
			if n.undoes() {
				back = 1
			}
			if charges != 1 || mails != 1 || refunds != back || sorry != back {
				b.t.Errorf("%s, killed at %s: %d charges, %d refunds, %d mails, %d taken back", n.key, n.point, charges, refunds, mails, sorry)
			}
			a, err := c.Trigger(b.t.Context(), ops, control.Request{Job: n.job, Window: strings.TrimPrefix(n.key, n.job+":")})
			if err != nil || a.Outcome != daybook.Reused {
				b.t.Errorf("%s: asked for once more, it is %s: %v", n.key, a.Outcome, err)
			}
		}
	})
}

// A script with three effects is killed at every line, and with it, or instead, the daybook that marks its effect, that one's
// command, or the daybook that serves: each effect happens once, and so does each refund. A person is asked only about what
// nobody is left to know.
func TestKilledAtEveryBoundary(t *testing.T) {
	onBoth(t, boundaryJobs, func(w *world) {
		b := newBoundaries(w)
		b.killed([]victim{
			{"script", slices.Concat(scriptPoints, effectPoints), barePoints, never, func(v *visit) { slay(v.script) }, false, nil},
			{"effect", effectPoints, barePoints, mail, func(v *visit) { slay(v.effect) }, false, nil},
			{"branch", append([]string{"asked"}, effectPoints...), barePoints, mail, func(v *visit) { slay(v.effect, v.pid) }, false, nil},
			{"serve", slices.Concat([]string{"asked", "ladder"}, scriptPoints, effectPoints, undoPoints), slices.Concat(barePoints, undoPoints), never, nil, true, nil},
			{"all", slices.Concat([]string{"asked", "ladder"}, scriptPoints, effectPoints, undoPoints), slices.Concat(barePoints, undoPoints), mail, nil, true, nil},
		})
		b.noDirectories()
	})
}

// victim is who is killed, and where the work is then.
type victim struct {
	name    string
	points  []string
	bare    []string
	unknown func(point string) bool // of paid
	kill    func(v *visit)
	serves  bool   // the daybook that serves is killed
	also    func() // kills somebody else, and starts him again
}

func mail(point string) bool { return strings.HasPrefix(point, "mail-") }
func never(string) bool      { return false }

// killed kills one victim after the other, wherever its work can be, and lets the rest go on.
func (b *boundaries) killed(victims []victim, change ...func(*exec.Cmd)) {
	b.t.Helper()
	s := b.served(change...)
	for _, victim := range victims {
		began := time.Now()
		var keys []*boundary
		for _, p := range victim.points {
			keys = append(keys, b.add("paid", p, victim.unknown(p)))
		}
		for _, p := range victim.bare { // an undo is part of the daybook that serves
			keys = append(keys, b.add("bare", p, victim.unknown("mail-begun") || strings.HasPrefix(p, "undo-")))
		}
		b.stops(keys)
		stopped := b.answered(keys, s)
		for _, n := range keys {
			if victim.kill != nil {
				victim.kill(b.visit(n.key))
			}
		}
		if victim.also != nil {
			victim.also()
		}
		if victim.serves {
			b.kill(s, victim.name == "all")
			s = b.served(change...)
		}
		b.release(keys, stopped)
		b.settle(keys)
		b.t.Logf("%s killed at %d points: settled after %s", victim.name, len(keys), time.Since(began).Round(time.Millisecond))
	}
	b.judge()
}
