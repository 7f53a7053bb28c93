package daybooktest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/daybooktest"
	"github.com/daybook-run/daybook/engine"
)

// bank is a far side with two books, of charges and of refunds, in which a wire key stands once at most: what comes again under
// it is answered with what was done, if the bank remembers, and is done again if it does not.
type bank struct {
	mu        sync.Mutex
	remembers bool
	decline   bool // the second charge
	unsure    bool // the first charge is booked, and its caller does not hear of it
	charges   map[string]int
	refunds   map[string]int // by what they give back
	under     map[string]int // by their own wire key
	sent      int            // requests for a refund, whatever came of them
	// What becomes of the next refund: before it is booked, and after. They are forgotten when they were called.
	before, after func() error
	// What the bank says when it is asked; nil: the truth. asked is called first.
	says  func(wireKey string) (daybook.Answer, error)
	asked func()
	// working is called when the second charge is under way.
	working func()
}

func once(f *func() error) error {
	do := *f
	*f = nil
	if do == nil {
		return nil
	}
	return do()
}

func (b *bank) charge(name string) func(context.Context, string) (string, error) {
	return func(_ context.Context, wireKey string) (string, error) {
		if name == "second" && b.working != nil {
			b.working()
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.decline && name == "second" {
			return "", daybook.Permanent(errors.New("declined"))
		}
		b.charges[wireKey]++
		if b.unsure && name == "first" {
			b.unsure = false
			return "", errors.New("the line went dead")
		}
		return wireKey, nil
	}
}

func (b *bank) refund(_ context.Context, undoKey, charge string) error {
	b.mu.Lock()
	b.sent++
	before := b.before
	b.before = nil
	b.mu.Unlock()
	if before != nil {
		if err := before(); err != nil {
			return err
		}
	}
	b.mu.Lock()
	if b.under[undoKey] == 0 || !b.remembers {
		b.refunds[charge]++
	}
	b.under[undoKey]++
	after := b.after
	b.after = nil
	b.mu.Unlock()
	if after != nil {
		return after()
	}
	return nil
}

func (b *bank) ask(_ context.Context, wireKey string) (string, daybook.Answer, error) {
	if b.asked != nil {
		b.asked()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.says != nil {
		a, err := b.says(wireKey)
		return "", a, err
	}
	if b.charges[wireKey]+b.under[wireKey] > 0 {
		return wireKey, daybook.Yes, nil
	}
	return "", daybook.No, nil
}

func (b *bank) work(remembers time.Duration) func(context.Context, *daybook.Run) error {
	return func(ctx context.Context, r *daybook.Run) error {
		for _, name := range []string{"first", "second"} {
			e := daybook.EffectOf[string]{Do: b.charge(name), Undo: b.refund, Remembers: remembers}
			if _, err := daybook.Effect(ctx, r, name, e); err != nil {
				return err
			}
		}
		return nil
	}
}

// How the far side of a job of the matrix can be asked is in its name.
const (
	plain  = "plain"  // it cannot
	asked  = "asked"  // it can, about charges and refunds
	deaf   = "deaf"   // it can, and knows of charges only
	memory = "memory" // it cannot, and answers a repeated wire key
)

// trouble is what happens to the first refund of an undo.
type trouble struct {
	name, job string
	arm       func(m *matrix)
	kind      daybook.LetterKind // of the letter that a person finds; empty: none is needed
	booked    bool               // what that person sees in the bank's book
}

func (m *matrix) lose() error {
	daybooktest.Lose(m.e)
	select {} // a process that is gone says nothing more, and neither does this
}

func lineDead() error { return errors.New("the line went dead") }

var troubles = []trouble{
	{name: "none", job: plain, arm: func(*matrix) {}},
	{name: "killed before begin", job: plain, arm: func(m *matrix) { m.starting = m.lose }},
	{name: "killed after begin", job: plain, arm: func(m *matrix) { m.bank.before = m.lose }, kind: daybook.LetterUnknown},
	{name: "killed after send", job: plain, arm: func(m *matrix) { m.bank.after = m.lose }, kind: daybook.LetterUnknown, booked: true},
	{name: "answer lost", job: plain, arm: func(m *matrix) { m.bank.after = lineDead }, kind: daybook.LetterUnknown, booked: true},
	{name: "request lost", job: plain, arm: func(m *matrix) { m.bank.before = lineDead }, kind: daybook.LetterUnknown},
	{name: "not done", job: plain, arm: func(m *matrix) {
		m.bank.before = func() error { return daybook.NotDone(errors.New("closed for lunch")) }
	}},
	{name: "refused for good", job: plain, arm: func(m *matrix) {
		m.bank.before = func() error { return daybook.Permanent(errors.New("too late for a refund")) }
	}, kind: daybook.LetterUndo},
	{name: "killed after begin, remembered", job: memory, arm: func(m *matrix) { m.bank.before = m.lose }},
	{name: "killed after send, remembered", job: memory, arm: func(m *matrix) { m.bank.after = m.lose }},
	{name: "killed after send, probe yes", job: asked, arm: func(m *matrix) { m.bank.after = m.lose }},
	{name: "killed after begin, probe no", job: asked, arm: func(m *matrix) { m.bank.before = m.lose }},
	{name: "killed after send, probe no at first", job: asked, arm: func(m *matrix) {
		m.bank.after = m.lose
		asked := 0
		m.bank.says = func(wireKey string) (daybook.Answer, error) {
			if asked++; asked == 1 || m.bank.under[wireKey] == 0 { // it has not arrived yet
				return daybook.No, nil
			}
			return daybook.Yes, nil
		}
	}},
	{name: "killed after begin, cannot tell", job: asked, arm: func(m *matrix) { m.bank.before = m.lose; m.mute() }, kind: daybook.LetterUnknown},
	{name: "killed after send, cannot tell", job: asked, arm: func(m *matrix) { m.bank.after = m.lose; m.mute() }, kind: daybook.LetterUnknown, booked: true},
	{name: "killed after send, asked about charges only", job: deaf, arm: func(m *matrix) { m.bank.after = m.lose }, kind: daybook.LetterUnknown, booked: true},
	{name: "killed after begin, asked about charges only", job: deaf, arm: func(m *matrix) { m.bank.before = m.lose }, kind: daybook.LetterUnknown},
	{name: "killed in the probe", job: asked, arm: func(m *matrix) {
		m.bank.after = m.lose
		m.bank.asked = func() { m.bank.asked = nil; _ = m.lose() }
	}},
	{name: "refused for good, after a probe's no", job: asked, arm: func(m *matrix) {
		m.bank.before = func() error {
			m.bank.before = func() error { return daybook.Permanent(errors.New("too late for a refund")) }
			return lineDead()
		}
	}, kind: daybook.LetterUndo},
}

// mute lets the bank not know.
func (m *matrix) mute() {
	m.bank.says = func(string) (daybook.Answer, error) { return daybook.CannotTell, nil }
}

// matrix is one cell: what is undone, who clicks, and what goes wrong.
type matrix struct {
	t        *testing.T
	e        *daybooktest.Engine
	db       engine.DB
	bank     *bank
	starting func() error // called when an attempt starts
	key      daybook.Key
	trouble  trouble
}

func newMatrix(t *testing.T, db engine.DB) *matrix {
	m := &matrix{t: t, e: daybooktest.New(t, db), db: db, bank: &bank{charges: map[string]int{}, refunds: map[string]int{}, under: map[string]int{}}}
	var all []engine.Definition
	for _, name := range []string{plain, asked, deaf, memory} {
		j := daybook.Job{Name: name, Owner: "ops", Timezone: "UTC", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once, Steps: true}
		d := engine.Definition{Job: j, Env: func() (map[string]string, error) { return nil, once(&m.starting) }}
		remembers := time.Duration(0)
		switch name {
		case deaf:
			d.Ask = func(_ context.Context, wireKey string) (any, daybook.Answer, error) {
				m.bank.mu.Lock()
				defer m.bank.mu.Unlock()
				if m.bank.charges[wireKey] > 0 {
					return wireKey, daybook.Yes, nil
				}
				return "", daybook.No, nil
			}
		case asked:
			d.Job.ProbeUndo = true
			d.Ask = func(ctx context.Context, wireKey string) (any, daybook.Answer, error) {
				return m.bank.ask(ctx, wireKey)
			}
		case memory:
			remembers = 24 * time.Hour
		}
		d.Do = m.bank.work(remembers)
		all = append(all, d)
	}
	if err := m.e.Define(all...); err != nil { // Handle takes no Env
		t.Fatal(err)
	}
	m.e.At(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	return m
}

// pattern is who clicks, and when. It returns once the undo of the key is begun.
type pattern struct {
	name  string
	click func(m *matrix)
}

var patterns = []pattern{
	{"once", func(m *matrix) { m.undo() }},
	{"twice at once", (*matrix).twice},
	{"undo, then replay", func(m *matrix) { m.undo(); m.sealed() }},
	{"replay, then undo", func(m *matrix) {
		answers, err := m.e.Control().Replay(m.t.Context(), ops, []daybook.Key{m.key}, "")
		if err != nil {
			m.t.Fatal(err)
		}
		if answers[0].Outcome == daybook.Started { // of the dead letter: what is left is under way
			m.refused()
			m.e.Run()
			m.disarm()
		}
		m.undo()
	}},
}

// undo clicks once.
func (m *matrix) undo() {
	m.t.Helper()
	m.arm()
	a, err := m.e.Control().Undo(m.t.Context(), ops, m.key, "wrong price")
	if err != nil || a.Run.Key != m.key.Undo() {
		m.t.Fatalf("undo: %+v %v", a.Run, err)
	}
}

// twice clicks twice, by two processes at the same time.
func (m *matrix) twice() {
	m.t.Helper()
	m.arm()
	other, err := engine.Open(m.t.Context(), m.db, engine.Options{Now: m.e.Now, ByHand: true})
	if err != nil {
		m.t.Fatal(err)
	}
	defer other.Close()
	gate, errs := make(chan struct{}), make(chan error, 4)
	for _, c := range []*control.Control{m.e.Control(), other.Control(), m.e.Control(), other.Control()} {
		go func() {
			<-gate
			_, err := c.Undo(m.t.Context(), ops, m.key, "wrong price")
			errs <- err
		}()
	}
	close(gate)
	begun := 0
	for range 4 {
		switch err := <-errs; {
		case err == nil:
			begun++
		case daybook.CodeOf(err) != daybook.CodeConflict:
			m.t.Errorf("a click: %v", err)
		}
	}
	if begun != 1 {
		m.t.Fatalf("%d of 4 clicks began an undo", begun)
	}
}

// arm lets the trouble come. That the bank is asked is one more instant to click at.
func (m *matrix) arm() {
	m.trouble.arm(m)
	if m.bank.asked == nil {
		m.bank.asked = m.sealed
	}
}

func (m *matrix) disarm() {
	m.starting, m.bank.before, m.bank.after, m.bank.says, m.bank.asked = nil, nil, nil, nil, nil
}

// refused looks that no undo begins now.
func (m *matrix) refused() {
	m.t.Helper()
	_, err := m.e.Control().Undo(m.t.Context(), ops, m.key, "too early")
	refused(m.t, err)
}

// sealed tries everything that could let a run go on whose undo has begun. Nothing does.
func (m *matrix) sealed() {
	m.t.Helper()
	c, ctx := m.e.Control(), m.t.Context()
	acts := map[string]func() error{
		"undo":    func() error { _, err := c.Undo(ctx, ops, m.key, "again"); return err },
		"dismiss": func() error { _, err := c.Dismiss(ctx, ops, m.key, "never mind"); return err },
		"cancel":  func() error { _, err := c.Cancel(ctx, ops, m.key, "never mind"); return err },
		"reopen":  func() error { _, err := c.Reopen(ctx, ops, m.key, "again"); return err },
		"resolve": func() error {
			_, err := c.Resolve(ctx, ops, m.key, control.Word{Step: "second", As: daybook.AsNotDone}, "looked")
			return err
		},
	}
	for name, act := range acts {
		if err := act(); daybook.CodeOf(err) != daybook.CodeConflict {
			m.t.Errorf("%s of what is being undone: %v", name, err)
		}
	}
	answers, err := c.Replay(ctx, ops, []daybook.Key{m.key}, "")
	if err != nil || answers[0].Outcome == daybook.Started || answers[0].Outcome == daybook.Joined {
		m.t.Errorf("replay of what is being undone: %v %v", answers, err)
	}
	for _, source := range []daybook.Source{daybook.SourceManual, daybook.SourceAPI} {
		a, err := c.Trigger(ctx, ops, control.Request{Job: m.key.Job(), Window: m.key.Parts().Window, Source: source})
		if err != nil || a.Outcome == daybook.Started || a.Outcome == daybook.Joined {
			m.t.Errorf("trigger of what is being undone: %s %v", a.Outcome, err)
		}
	}
}

// settle lets time pass until the undo is done. What a person is to decide, a person who has looked into the bank's book
// decides; that nobody else does it is looked at first.
func (m *matrix) settle() {
	m.t.Helper()
	letters := 0
	for pass := range 60 {
		m.e.Run()
		u := find(m.t, m.e, m.key.Undo())
		switch {
		case u.State == daybook.Done:
			if want := m.trouble.kind; want != "" && letters == 0 {
				m.t.Errorf("no letter of kind %s was written", want)
			}
			return
		case u.State == daybook.Dead:
			letters++
			m.letter(u)
		default:
			if pass < 2 {
				m.sealed()
			}
			m.e.Advance(20 * time.Second) // less than a lease: longer leaps look like a machine that slept
		}
	}
	u := find(m.t, m.e, m.key.Undo())
	m.t.Fatalf("%s is %s (%s): %s", u.Key, u.State, u.Reason, u.LastError)
}

// letter is what a person does with a letter of the undo.
func (m *matrix) letter(u *daybook.Run) {
	m.t.Helper()
	if u.Letter.Kind != m.trouble.kind {
		m.t.Fatalf("a letter of kind %s: %s", u.Letter.Kind, u.LastError)
	}
	alerts := 0
	q := fmt.Sprintf(`SELECT COUNT(*) FROM daybook_alerts WHERE closed_us = 0 AND key = '%s'`, u.Key)
	if err := m.db.Read.QueryRowContext(m.t.Context(), q).Scan(&alerts); err != nil || alerts == 0 {
		m.t.Errorf("a letter without an alert: %d %v", alerts, err)
	}
	sent := m.bank.sent
	m.e.Advance(26 * time.Hour)
	m.sealed()
	if m.bank.sent != sent {
		m.t.Errorf("%d refunds were sent while a letter stood open", m.bank.sent-sent)
	}
	if u.Letter.Kind == daybook.LetterUndo {
		answers, err := m.e.Control().Replay(m.t.Context(), ops, []daybook.Key{u.Key}, "")
		if err != nil || answers[0].Outcome != daybook.Started {
			m.t.Fatalf("replay of the undo: %v %v", answers, err)
		}
		return
	}
	answers, err := m.e.Control().Replay(m.t.Context(), ops, []daybook.Key{u.Key}, "")
	if err != nil || answers[0].Outcome != daybook.Refused {
		m.t.Errorf("replay of an unknown refund: %v %v", answers, err)
	}
	_, err = m.e.Control().Dismiss(m.t.Context(), ops, u.Key, "no idea")
	refused(m.t, err)
	as := daybook.AsNotDone
	if m.trouble.booked {
		as = daybook.AsDone
	}
	m.bank.says = nil
	for _, o := range u.OpenSteps() {
		if _, err := m.e.Control().Resolve(m.t.Context(), ops, u.Key, control.Word{Step: o.Step, As: as, Attempt: u.Attempts}, "looked"); err != nil {
			m.t.Fatal(err)
		}
	}
}

// charged lets the run that is to be undone come to its end, done or as a dead letter, and clicks too early, while its work
// is under way and while the bank is asked about it.
func (m *matrix) charged(dead bool) {
	m.t.Helper()
	m.disarm()
	m.bank.decline, m.bank.unsure, m.bank.remembers = dead, m.key.Job() == asked, m.key.Job() == memory
	early := 0
	click := func() { early++; m.refused() }
	m.bank.working, m.bank.asked = click, click
	if _, err := m.e.Control().Trigger(m.t.Context(), ops, control.Request{Job: m.key.Job(), Window: m.key.Parts().Window}); err != nil {
		m.t.Fatal(err)
	}
	m.e.Run()
	m.bank.working, m.bank.asked, m.bank.decline = nil, nil, false
	want := daybook.Done
	if dead {
		want = daybook.Dead
	}
	if r := find(m.t, m.e, m.key); r.State != want || early < 1 || m.key.Job() == asked && early < 2 {
		m.t.Fatalf("%s is %s (%s) after %d clicks: %s", m.key, r.State, r.Reason, early, r.LastError)
	}
}

// judge compares what is told of the run with the books: each charge was given back once.
func (m *matrix) judge() {
	m.t.Helper()
	m.sealed()
	charges := 0
	for wireKey, n := range m.bank.charges {
		if !strings.HasPrefix(wireKey, string(m.key)+"#") {
			continue
		}
		charges++
		if n != 1 || m.bank.refunds[wireKey] != 1 {
			m.t.Errorf("%s: %d charges, %d refunds", wireKey, n, m.bank.refunds[wireKey])
		}
	}
	if charges == 0 {
		m.t.Error("nothing was charged")
	}
	switch r := find(m.t, m.e, m.key); {
	case r.State == daybook.Done && r.Reason == daybook.ReasonUndone:
	case r.State == daybook.Dead && r.Reason == daybook.ReasonCompensated && r.Letter.State == daybook.LetterCompensated:
	default:
		m.t.Errorf("%s is %s (%s)", r.Key, r.State, r.Reason)
	}
}

// What was done is undone once: whoever clicks, how often, in which order, and wherever the worker is lost. What nobody can
// tell is sent by nobody again, and is a person's.
func TestUndoMatrix(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		whole, day := t, time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
		m := newMatrix(t, db)
		for _, dead := range []bool{false, true} {
			for _, p := range patterns {
				for _, tr := range troubles {
					day = day.AddDate(0, 0, 1)
					t.Run(fmt.Sprintf("dead=%t/%s/%s", dead, p.name, tr.name), func(t *testing.T) {
						m.t, m.trouble, m.key = t, tr, daybook.Key(tr.job+":"+day.Format(time.DateOnly))
						defer func() { m.t = whole }()
						m.charged(dead)
						p.click(m)
						m.settle()
						m.judge()
					})
				}
			}
		}
	})
}
