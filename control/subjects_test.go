package control_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/internal/lang"
	"github.com/daybook-run/daybook/store/storetest"
)

// fan is a run with subjects that are listed.
type fan struct {
	*bench
	job    *daybook.Job
	parent daybook.Key
}

func (b *bench) fan(subjects int) *fan {
	b.t.Helper()
	b.at(utc("2026-03-02T12:00:00"))
	f := &fan{bench: b, parent: "renew:2026-03-02"}
	f.job = b.job(daybook.Job{Name: "renew", Window: daybook.Day, HasSubjects: true, Serial: "sub:{subject}", Retry: daybook.Retry{Backoff: []time.Duration{time.Minute}, Jitter: -1}})
	b.trigger(control.Request{Job: "renew", Window: "2026-03-02"})
	p := b.claim(f.parent)
	var children []*daybook.Run
	for i := range subjects {
		c, err := p.Child(f.job, daybook.Subject{ID: fmt.Sprintf("s%02d", i)}, p.Window)
		if err != nil {
			b.t.Fatal(err)
		}
		children = append(children, c)
	}
	if _, _, err := b.s.ListChildren(b.ctx, p, children, b.now.Add(time.Minute)); err != nil {
		b.t.Fatal(err)
	}
	storetest.Apply(b.ctx, b.t, b.s, p.List(daybook.Listed{Subjects: int64(subjects), New: int64(subjects)}, daybook.Outcome{Result: daybook.ResultDone}, b.now))
	return f
}

// work lets those go that may, and ends them: by what is said of each, or with that they were refused for now.
func (f *fan) work(ends map[string]daybook.Outcome) {
	f.t.Helper()
	f.look()
	runs, err := f.s.Claim(f.ctx, daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: 100, Lease: f.now.Add(time.Minute), NewID: storetest.NewID}, f.now)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, r := range runs {
		o, ok := ends[r.Subject]
		if !ok {
			o = daybook.Outcome{Result: daybook.ResultNotDone, Error: "503 from the gateway"}
		}
		storetest.Apply(f.ctx, f.t, f.s, r.Next(o, f.job.Policy(), f.now))
	}
	f.look()
}

func (f *fan) look() {
	f.t.Helper()
	for range 20 {
		keys, err := f.s.Fanouts(f.ctx, f.now, 10)
		if err != nil {
			f.t.Fatal(err)
		}
		if len(keys) == 0 {
			return
		}
		for _, k := range keys {
			if err := f.s.Look(f.ctx, k, f.job.Policy(), 64, f.now); err != nil {
				f.t.Fatal(err)
			}
		}
	}
}

func (f *fan) doctor() string {
	f.t.Helper()
	found, err := f.Doctor(f.ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	var lines []string
	for _, x := range found {
		if strings.Contains(x.What.String(), string(f.parent)) {
			lines = append(lines, fmt.Sprintf("%s %s → %s", x.Level, x.What, x.Do))
		}
	}
	return strings.Join(lines, "\n")
}

func (f *fan) turn(subject string) string {
	f.t.Helper()
	said, err := f.Turn(f.ctx, f.run(f.parent+"/"+daybook.Key(subject)))
	if err != nil {
		f.t.Fatal(err)
	}
	return said.String()
}

// counted is the parent with its subjects counted.
func (f *fan) counted() *daybook.Run {
	f.t.Helper()
	r, err := f.Run(f.ctx, f.parent)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func (f *fan) is(what, got, want string) {
	f.t.Helper()
	if got != want {
		f.t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

func TestWhatSubjectsWaitForIsSaid(t *testing.T) {
	each(t, func(b *bench) {
		f := b.fan(12)
		f.is("doctor at first", f.doctor(), "")
		f.is("turn at first", f.turn("s09"), "comes when one has succeeded: until then 5 are tried")
		f.after(6 * time.Minute)
		f.is("doctor while nobody is let go", f.doctor(), "warn renew:2026-03-02: 12 subjects wait for their turn, and none is under way → daybook run show renew:2026-03-02")
		f.work(nil)
		f.is("doctor of the breaker", f.doctor(),
			"bad renew:2026-03-02: 0 done, 0 unknown of 12 subjects; they fail alike (503 from the gateway), so one is tried at a time → daybook run show renew:2026-03-02")
		f.is("turn under the breaker", f.turn("s09"), "comes when one has succeeded: the next is tried at 2026-03-02 12:07 UTC")
		f.is("turn of what failed", f.turn("s00"), "comes when one has succeeded: the next is tried at 2026-03-02 12:07 UTC")
		f.after(time.Minute)
		f.look()
		f.is("turn while one is tried", f.turn("s09"), "comes when renew:2026-03-02/s05 has succeeded, which is tried now")
		f.work(nil)
		f.is("turn once the ladder is used up", f.turn("s09"), "comes when renew:2026-03-02 is replayed")
		if a, err := f.Replay(f.ctx, ops, []daybook.Key{f.parent}, ""); err != nil || a[0].Outcome != daybook.Started {
			t.Fatalf("%+v %v", a, err)
		}
		f.work(map[string]daybook.Outcome{"s00": {Result: daybook.ResultDone}})
		f.is("turn after a success", f.turn("s11"), "")
	})
}

func TestALetterIsReplayedWhileAnotherSubjectWaits(t *testing.T) {
	each(t, func(b *bench) {
		f := b.fan(3)
		f.look()
		b.sql("INSERT INTO daybook_locks (serial, key, since_us) VALUES ('sub:s01', 'renew:2026-03-01/s01', 1)")
		f.work(map[string]daybook.Outcome{"s00": {Result: daybook.ResultDone}, "s02": {Result: daybook.ResultPermanent, Error: "card declined"}})
		f.after(6 * time.Minute)
		f.is("doctor", f.doctor(), "warn renew:2026-03-02: 1 subject waits for a serial key that another run has, and none is under way → daybook run show renew:2026-03-02")
		p := f.counted()
		f.is("under way", control.UnderWayText(p.Subjects).String(), "0 running, 0 to be tried again, 0 wait for their turn, 1 for a serial key that another run has")
		if p.WaitsForPerson() {
			t.Error("it waits for a person, and one of its subjects for a key")
		}
		a, err := f.Replay(f.ctx, ops, []daybook.Key{f.parent}, "")
		if err != nil || a[0].Outcome != daybook.Started || a[0].Replayed != 1 {
			t.Fatalf("%+v %v", a, err)
		}
		f.work(map[string]daybook.Outcome{"s02": {Result: daybook.ResultDone}})
		f.is("the letter", string(f.run(f.parent+"/s02").State), "done")
		b.sql("DELETE FROM daybook_locks")
		if _, err := b.s.Unpark(b.ctx, b.now); err != nil {
			t.Fatal(err)
		}
		f.work(map[string]daybook.Outcome{"s01": {Result: daybook.ResultPermanent, Error: "card declined"}})
		if p = f.counted(); !p.WaitsForPerson() || control.StateText("▶", p).String() != "▶ running (waits for you: 1 letter)" {
			t.Errorf("%s", control.StateText("▶", p))
		}
		letters, err := f.OpenLetters(f.ctx, f.parent)
		if err != nil || len(letters) != 1 || letters[0] != f.parent+"/s01" {
			t.Errorf("letters %v %v", letters, err)
		}
		f.is("doctor", f.doctor(), "warn renew:2026-03-02 does not end by itself: 1 open letter, 2 done, 0 unknown of 3 subjects → daybook dead list")
	})
}

// A run with subjects has no executor: who is asked to end it, and what becomes of whom, is said. Once it is cancelled, what was done all
// the same is counted wherever it is asked for.
func TestACancelledRunWithSubjectsSaysWhatWasDone(t *testing.T) {
	each(t, func(b *bench) {
		f := b.fan(8)
		f.look()
		started, err := f.s.Claim(f.ctx, daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: 100, Lease: f.now.Add(time.Minute), NewID: storetest.NewID}, f.now)
		if err != nil || len(started) != 5 {
			t.Fatalf("%d started, %v", len(started), err)
		}
		f.is("what a cancel would do", control.WouldEnd(f.counted()).String(),
			"renew:2026-03-02  is under way: those of its subjects that have not started would be cancelled, those that have would go on to their end")
		a, err := f.Cancel(f.ctx, ops, f.parent, "wrong list")
		if err != nil || !a.Asked {
			t.Fatalf("%+v %v", a, err)
		}
		const nobody = " Nobody executes now: no serve was seen in the last 30 s."
		f.is("cancelled", a.Line(), "renew:2026-03-02  is asked to end: those of its subjects that have not started are cancelled, those that have go on to their end. "+
			"So far: 0 done, 0 unknown of 8 subjects."+nobody)
		if a, err = f.Cancel(f.ctx, control.Person{Name: "boss"}, f.parent, "now"); err != nil {
			t.Fatal(err)
		}
		f.is("cancelled twice", a.Line(), "renew:2026-03-02  was asked to end by ops already: of its subjects none starts any more, and those that have go on to their end."+nobody)
		f.look()
		for _, r := range started {
			storetest.Apply(f.ctx, t, f.s, r.Next(daybook.Outcome{Result: daybook.ResultDone}, f.job.Policy(), f.now))
		}
		f.look()
		p := f.counted()
		if p.State != daybook.Cancelled {
			t.Fatalf("%s", p.State)
		}
		f.is("head", control.DoneText(p.Subjects).String(), "5 of 8 subjects done, 3 cancelled")
		f.is("head in Chinese", lang.For(lang.Chinese).Say(control.DoneText(p.Subjects)), "8 个业务对象中 5 个完成、3 个取消")
		answer := b.trigger(control.Request{Job: "renew", Window: "2026-03-02"})
		f.is("asked for again", answer.Line(), "renew:2026-03-02  was cancelled at 12:00:00: 5 done, 0 unknown of 8 subjects; 3 cancelled. It is not started again by itself.")
		f.is("asked for again in Chinese", lang.For(lang.Chinese).Say(answer.Text()), "renew:2026-03-02  已于 12:00:00 取消：8 个业务对象中 5 个完成、0 个结果未知；3 个已取消。不会自行重新开始。")
		with, err := f.AskedToEnd(f.ctx, f.run(f.parent+"/s07"))
		if err != nil || with == nil {
			t.Fatalf("who ended s07: %v %v", with, err)
		}
		f.is("who ended s07", with.Text(time.UTC).String(), "to end with renew:2026-03-02 by ops, 2026-03-02 12:00:00 UTC: wrong list")
		if by, err := f.AskedToEnd(f.ctx, f.run(f.parent+"/s00")); err != nil || by != nil {
			t.Errorf("s00 came to its end: %+v %v", by, err)
		}
	})
}
