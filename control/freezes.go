package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// FreezeRequest asks for a freeze that begins now.
type FreezeRequest struct {
	For  time.Duration // required, at most daybook.MaxFreeze
	Name string        // empty: freeze, or the next of freeze-2, freeze-3 …
	Only daybook.Priority
	Note string
}

const maxFreezeNames = 50

// StartFreeze lets nothing start from now on, for a while: no run, no retry, no question to a far side, no undo. What runs goes
// on. All nodes see it at once. A reason is required.
//
// Errors: CodeInvalid, no reason, no end, one beyond a day, a priority other than P0, or a name that is none; CodeConflict, a
// freeze of this name stands, or the file or Daybook itself uses it.
func (c *Control) StartFreeze(ctx context.Context, p Person, q FreezeRequest) (daybook.Freeze, error) {
	p, err := p.check()
	if err != nil {
		return daybook.Freeze{}, err
	}
	if q.Note, err = reason(q.Note, daybook.Say("a freeze"), true); err != nil {
		return daybook.Freeze{}, err
	}
	if err := c.MayFreeze(q); err != nil {
		return daybook.Freeze{}, err
	}
	now := c.now()
	f := daybook.Freeze{Name: cmp.Or(q.Name, "freeze"), Only: q.Only, From: now, Until: now.Add(q.For).Truncate(time.Microsecond), Actor: p.Name, Note: q.Note}
	for n := 2; ; n++ {
		act := daybook.Activity{At: now, Actor: p.Name, Action: "freeze start", Note: daybook.Clip(f.Name+", until "+f.Until.Format(time.RFC3339)+": "+q.Note, daybook.MaxReasonBytes)}
		started, err := c.s.StartFreeze(ctx, f, act)
		switch {
		case err != nil || started:
			return f, err
		case q.Name != "" || n > maxFreezeNames:
			return daybook.Freeze{}, daybook.Conflict("a freeze %s stands already", f.Name).WithHint("daybook freeze list; end it first, or give this one another --name")
		}
		f.Name = fmt.Sprintf("freeze-%d", n)
	}
}

// MayFreeze says whether a freeze could be begun as it is asked for, but for one of its name that stands. Errors as for
// StartFreeze.
func (c *Control) MayFreeze(q FreezeRequest) error {
	switch {
	case q.For <= 0:
		return daybook.Invalid("a freeze needs an end").WithHint("such as --for 30m: at most 24h")
	case q.For > daybook.MaxFreeze:
		return daybook.Invalid("a freeze of %s is longer than 24h", short(q.For)).WithHint("daybook job pause J holds one job until it is resumed")
	case q.Only != "" && q.Only != daybook.P0 && strings.EqualFold(string(q.Only), string(daybook.P0)):
		return daybook.Invalid("--only %s: priorities are written in capital letters", string(q.Only)).WithHint("did you mean --only P0?")
	case q.Only != "" && q.Only != daybook.P0:
		return daybook.Invalid("a freeze holds everything, or only P0, not %q", daybook.Clip(string(q.Only), 40))
	case q.Name == "":
		return nil
	case q.Name == daybook.HoldClock || q.Name == holdRestored:
		return daybook.Conflict("%s is the name of a hold that Daybook puts up itself", q.Name).WithHint("give the freeze another --name")
	case slices.Contains(c.o.Freezes().Names(), q.Name):
		return daybook.Conflict("the file has a freeze %s", q.Name).WithHint("give this one another --name")
	}
	if daybook.CheckName(q.Name) != nil {
		e := daybook.Invalid("%q is no name of a freeze", daybook.Clip(q.Name, daybook.MaxNameBytes))
		if like := strings.ToLower(strings.Join(strings.Fields(q.Name), "-")); daybook.CheckName(like) == nil {
			return e.WithHint("did you mean %s?", like)
		}
		return e.WithHint("1 to 64 lower-case letters, digits, '_' and '-', beginning with a letter or digit")
	}
	return nil
}

// holdRestored is the hold of a ledger that forgot.
const holdRestored = "restored"

// EndFreeze ends a freeze that a person began, or a hold that Daybook put up: the one named clock confirms the time. What was
// held starts, spread. Without a name it is the one that stands. A reason is required. The name is returned.
//
// Errors: CodeInvalid, no reason, or several stand and none is named; CodeNotFound, there is no such freeze (another may have
// ended it); CodeConflict, it is one of the file.
func (c *Control) EndFreeze(ctx context.Context, p Person, name, note string) (string, error) {
	p, err := p.check()
	if err != nil {
		return name, err
	}
	if note, err = reason(note, daybook.Say("the end of a freeze"), true); err != nil {
		return name, err
	}
	list, err := c.Freezes(ctx)
	if err != nil {
		return name, err
	}
	names := list.Names()
	if name == "" {
		switch len(names) {
		case 0:
			return name, daybook.NotFound("no freeze stands that could be ended").WithHint("daybook freeze list")
		case 1:
			name = names[0]
		default:
			return name, daybook.Invalid("which freeze is to end? there is: %s", daybook.Words(names)).WithHint("daybook freeze end NAME --reason …")
		}
	}
	if slices.ContainsFunc(list.Holds, func(h daybook.Hold) bool { return h.Name == name }) {
		return name, c.EndHold(ctx, p, name, note)
	}
	now := c.now()
	ended, err := c.s.EndFreeze(ctx, name, daybook.Activity{At: now, Actor: p.Name, Action: "freeze end", Note: daybook.Clip(name+": "+note, daybook.MaxReasonBytes)})
	switch {
	case err != nil:
		return name, err
	case ended:
		c.o.Wake()
		return name, nil
	case slices.Contains(c.o.Freezes().Names(), name):
		return name, daybook.Conflict("freeze %s is of the file: it ends by itself", name).WithHint("to end it before, take it out of the file: serve reads it again on SIGHUP")
	}
	return name, noHold(name, names)
}

// FreezeList is what holds runs, and what is held.
type FreezeList struct {
	At      time.Time
	Freezes []daybook.Freeze // that stand, the one that ends first before the others
	Coming  []daybook.Freeze // the next of each freeze of the file that does not stand
	Holds   []daybook.Hold   // put up by Daybook itself, until a person ends them
	Held    []*daybook.Run   // put off by freezes, the first 1,000
	Total   int              // of those
}

// Names are those of what a person can end.
func (l FreezeList) Names() []string {
	var names []string
	for _, h := range l.Holds {
		names = append(names, h.Name)
	}
	for _, f := range l.Freezes {
		if !f.OfFile {
			names = append(names, f.Name)
		}
	}
	return names
}

// Freezes lists what keeps runs from starting, and what it holds.
func (c *Control) Freezes(ctx context.Context) (FreezeList, error) {
	l := FreezeList{At: c.now()}
	freezes, err := c.s.Freezes(ctx, l.At)
	if err != nil {
		return l, err
	}
	for _, f := range append(freezes, c.o.Freezes().Next(l.At)...) {
		if f.From.After(l.At) {
			l.Coming = append(l.Coming, f)
		} else {
			l.Freezes = append(l.Freezes, f)
		}
	}
	soonest := func(a, b daybook.Freeze) int { return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Name, b.Name)) }
	slices.SortStableFunc(l.Freezes, soonest)
	slices.SortStableFunc(l.Coming, soonest)
	if l.Holds, err = c.s.Holds(ctx); err != nil {
		return l, err
	}
	l.Held, l.Total, err = c.s.Frozen(ctx, l.At, maxListed)
	return l, err
}

// Coming is P0 work in a span that begins now.
type Coming struct {
	Key daybook.Key
	Job string
	At  time.Time    // when it starts, or is tried next; of what is under way: since when
	Run *daybook.Run // nil: a fire that is still to come
}

// FreezeCheck tells whether a deployment of some length would meet P0 work.
type FreezeCheck struct {
	At, Until time.Time
	Coming    []Coming // by time; empty: nothing is met
}

// Exit is the exit code of the command line.
func (f FreezeCheck) Exit() int {
	if len(f.Coming) > 0 {
		return daybook.ExitRefused
	}
	return daybook.ExitOK
}

// CheckFreeze looks for P0 work that is under way now, or would start, be tried again or be asked about, within a span from now
// on. A dead letter is none: a person starts it.
//
// Errors: CodeInvalid, a span that is none, or longer than a day.
func (c *Control) CheckFreeze(ctx context.Context, span time.Duration) (FreezeCheck, error) {
	f := FreezeCheck{At: c.now()}
	if span <= 0 || span > daybook.MaxFreeze {
		return f, daybook.Invalid("a span of %s is outside 1s to 24h", span).WithHint("such as --for 31m: as long as the work that must not meet P0")
	}
	f.Until = f.At.Add(span)
	freezes, err := c.s.Freezes(ctx, f.At)
	if err != nil {
		return f, err
	}
	ofFile := append(freezes, c.o.Freezes().Between(f.At, f.Until)...)
	starts := func(k daybook.Key, p daybook.Priority, home string, at time.Time) time.Time {
		list := freezes
		if home == "" {
			list = ofFile
		}
		if due, _ := daybook.Thaw(list, k, p, calendar.Later(at, f.At)); !due.IsZero() {
			return due
		}
		return at
	}
	runs, err := c.s.Coming(ctx, f.Until, maxListed)
	if err != nil {
		return f, err
	}
	for _, r := range runs {
		n := Coming{Key: r.Key, Job: r.Job, At: r.Due, Run: r}
		if r.State == daybook.Running || r.Asking != "" {
			n.At = r.ClaimedAt
		} else if n.At = starts(r.Key, r.Priority, r.Home, r.Due); !n.At.Before(f.Until) {
			continue
		}
		f.Coming = append(f.Coming, n)
	}
	states, err := c.s.JobStates(ctx)
	if err != nil {
		return f, err
	}
	for _, st := range states {
		k := c.read(st)
		if k.retired() || st.Paused || k.schedule == nil || k.job.Priority != daybook.P0 || st.Home == daybook.HomeOnce {
			continue
		}
		for fire := range k.schedule.Between(st.Cursor, f.Until) {
			key := daybook.KeyParts{Job: st.Name, Window: fire.Window.Label}.Key()
			at := starts(key, k.job.Priority, st.Home, fire.At.Add(daybook.StartDelay(key, k.job.Jitter)))
			known, err := c.underAnyName(ctx, key, st.Formerly)
			if err != nil {
				return f, err
			}
			if fire.Skip == "" && known == nil && at.Before(f.Until) {
				f.Coming = append(f.Coming, Coming{Key: key, Job: st.Name, At: at})
			}
			if len(f.Coming) >= maxListed {
				break
			}
		}
	}
	slices.SortStableFunc(f.Coming, func(a, b Coming) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Key, b.Key)) })
	return f, nil
}

// thawing is a store whose runs say that they are frozen only while they are.
type thawing struct {
	Store
	clock func() time.Time
}

func (s thawing) Run(ctx context.Context, k daybook.Key) (*daybook.Run, error) {
	r, err := s.Store.Run(ctx, k)
	if r != nil {
		r.Hold = r.HeldAt(s.clock())
	}
	return r, err
}

func (s thawing) Runs(ctx context.Context, f daybook.Filter) ([]*daybook.Run, error) {
	runs, err := s.Store.Runs(ctx, f)
	now := s.clock()
	for _, r := range runs {
		r.Hold = r.HeldAt(now)
	}
	return runs, err
}

func (s thawing) Trigger(ctx context.Context, a daybook.Ask, template *daybook.Run, now time.Time) (daybook.Reply, *daybook.Run, error) {
	reply, r, err := s.Store.Trigger(ctx, a, template, now)
	if r != nil {
		r.Hold = r.HeldAt(now)
	}
	return reply, r, err
}
