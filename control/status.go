package control

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// Verdict answers a question of an owner. Absence of evidence is never yes.
type Verdict string

// Verdicts.
const (
	VerdictYes      Verdict = "yes"
	VerdictNo       Verdict = "no"
	VerdictNotKnown Verdict = "not known yet"
)

// Judgement is a verdict with what led to it, the weightiest first.
type Judgement struct {
	Verdict Verdict
	Because []daybook.Text // short phrases; empty with yes
}

// Need is one thing that a person must look at.
type Need struct {
	Priority daybook.Priority
	Kind     string // dead letter, unknown outcome, serial stuck, late, silent, fault, held, nobody executes, alert
	Job      string
	Key      daybook.Key // empty where it is about a job, or the installation, as a whole
	Text     daybook.Text
	Do       daybook.Text // the command, or what else to do
	Since    time.Time
	Run      *daybook.Run // nil where there is none
	WireKey  string       // of an unknown outcome: what is looked for at the far side
	Alert    string       // the id of the open alert about a letter; empty: there is none
}

// LateRun is a window that is due and not done.
type LateRun struct {
	Key      daybook.Key
	Job      string
	Priority daybook.Priority
	Since    time.Time    // it was to start
	Over     bool         // its grace is over
	Run      *daybook.Run // nil: the scheduler has not written it yet
}

// Status answers "did everything run?" and "is the money right?".
type Status struct {
	At       time.Time
	Ran      Judgement
	Money    Judgement
	NeedsYou []Need // P0 first, then the oldest
	Late     []LateRun
	Jobs     []JobView // those that a definition names
	// Done of Of jobs have done the window of their latest fire. Paused jobs and windows that were skipped do not count.
	Done, Of int
	Counts   daybook.Counts
	Next     []NextFire // of the next 24 hours, the first of each job, soonest first
	Holds    []daybook.Hold
	Restored *Restored        // nil: no freeze of a ledger that forgot stands
	Freezes  []daybook.Freeze // that stand
	Frozen   int              // runs that they put off
	Serves   []daybook.Node   // alive
	SeenAt   time.Time        // a serve was seen last; zero: never
	// Idle are the applications that do jobs of this ledger and of which no process is alive, with when one was seen last.
	Idle []daybook.Node
}

// Exit is the exit code of the command line: 6 when nobody executes, 3 when a person is needed or it is not known, else
// 0. That no reconcile job exists is told, and is no reason for 3.
func (s Status) Exit() int {
	switch {
	case s.unserved(), len(s.Idle) > 0:
		return daybook.ExitUnreachable
	case s.Ran.Verdict != VerdictYes, s.Money.Verdict == VerdictNo,
		slices.ContainsFunc(s.NeedsYou, func(n Need) bool { return n.Kind == "alert" }):
		return daybook.ExitNeedsPerson
	}
	return daybook.ExitOK
}

const (
	recentRuns = 14          // windows of a job that are looked at
	onTime     = time.Minute // a start within it is not late: two ticks of a scheduler, and a claim
	lookAhead  = 24 * time.Hour
)

// Status answers the two questions, for all jobs or for those named. Errors: CodeNotFound, no such job, with the nearest
// name.
//
// Did everything run? No, if any: an open dead letter; a P0 window not done past its grace; a job silent for longer than
// its max_silence, in business windows; a serial key held for longer than its holder's max_runtime; a schedule that cannot be worked out; a hold. Else not known yet, if any: no job
// is defined; no serve was seen in the last 30 s, and some job is not a line of daybook once; a job is late. Else yes.
//
// Is the money right? Not known yet: there is no reconcile job.
func (c *Control) Status(ctx context.Context, only ...string) (Status, error) {
	now := c.now()
	s := Status{At: now, Money: Judgement{Verdict: VerdictNotKnown, Because: []daybook.Text{noReconcileText()}}}
	states, err := c.s.JobStates(ctx)
	if err != nil {
		return s, err
	}
	for _, name := range only {
		if _, names, ok := find(states, name); !ok {
			return s, noJob(name, names)
		}
	}
	wanted := func(job string) bool {
		st, _ := current(states, job)
		return len(only) == 0 || slices.Contains(only, job) || slices.Contains(only, st.Name)
	}
	all, err := c.views(ctx, states, recentRuns, now)
	if err != nil {
		return s, err
	}
	live, err := c.live(ctx, &s, all)
	if err != nil {
		return s, err
	}
	freezes, err := c.Freezes(ctx)
	if err != nil {
		return s, err
	}
	s.Holds, s.Freezes, s.Frozen = freezes.Holds, freezes.Freezes, freezes.Total
	if s.Restored, err = c.restored(ctx, s.Holds); err != nil {
		return s, err
	}
	nodes, err := c.s.Nodes(ctx)
	if err != nil {
		return s, err
	}
	s.Serves = aliveNodes(nodes, "", now)
	for _, n := range nodes {
		if n.Role == "serve" && n.SeenAt.After(s.SeenAt) {
			s.SeenAt = n.SeenAt
		}
	}
	views := make(map[string]JobView, len(all))
	for _, v := range all {
		views[v.Name] = v
		if !v.Retired() && wanted(v.Name) {
			s.Jobs = append(s.Jobs, v)
		}
	}
	s.idle(nodes)
	letters, err := c.s.Letters(ctx, true, maxListed)
	if err != nil {
		return s, err
	}
	letters = slices.DeleteFunc(letters, func(l daybook.Letter) bool { return !wanted(l.Job) })
	if err := c.needLetters(ctx, &s, letters); err != nil {
		return s, err
	}
	if err := c.stuck(ctx, &s, views, wanted); err != nil {
		return s, err
	}
	s.late(live, views, wanted)
	s.unplanned()
	s.silent()
	s.standing()
	if err := c.unattended(ctx, &s, live, wanted); err != nil {
		return s, err
	}
	if err := c.told(ctx, &s, wanted); err != nil {
		return s, err
	}
	s.figures()
	open := len(letters)
	if len(only) == 0 {
		open = max(open, s.Counts.OpenLetters)
	}
	s.judge(open)
	return s, nil
}

// live returns the live runs. They are found among the newest windows of each job; only when the ledger has more of them
// than those, they are listed by state, which reads more.
func (c *Control) live(ctx context.Context, s *Status, views []JobView) ([]*daybook.Run, error) {
	var err error
	if s.Counts, err = c.s.Counts(ctx); err != nil {
		return nil, err
	}
	total := 0
	for _, n := range s.Counts.Live {
		total += n
	}
	var live []*daybook.Run
	for _, v := range views {
		for _, r := range v.Recent {
			if r.State.Live() && v.State.RenamedTo == "" { // that job lists them
				live = append(live, r)
			}
		}
	}
	if len(live) >= total {
		return live, nil
	}
	live = nil
	for _, state := range []daybook.State{daybook.Scheduled, daybook.Running, daybook.Retryable} {
		runs, err := c.s.Runs(ctx, daybook.Filter{State: state, Limit: maxListed})
		if err != nil {
			return nil, err
		}
		live = append(live, runs...)
	}
	return live, nil
}

// needLetters lists the open letters. The runs of the first ones are looked up, so that the list can say how far they got.
func (c *Control) needLetters(ctx context.Context, s *Status, letters []daybook.Letter) error {
	const looked = 50
	if len(letters) == 0 {
		return nil
	}
	ids, err := c.alertIDs(ctx)
	if err != nil {
		return err
	}
	for i, l := range letters {
		n := Need{Priority: l.Priority, Kind: "dead letter", Job: l.Job, Key: l.Key, Text: daybook.Say("%s", daybook.Stored(daybook.Clip(oneLine(l.Error), 300))), Since: l.OpenedAt,
			Do: letterDo(l, nil, false), Alert: ids[l.Key]}
		if l.Kind == daybook.LetterUnknown {
			n.Kind = "unknown outcome"
		}
		if i < looked {
			r, err := c.s.Run(ctx, l.Key)
			if err != nil && daybook.CodeOf(err) != daybook.CodeNotFound {
				return err
			}
			switch n.Run = r; {
			case r == nil:
			case l.Kind == daybook.LetterUnknown:
				n.Text = daybook.Say("%s", stored(daybook.Clip(oneLine(l.Error), 300), r))
				n.Do, n.WireKey = resolveCommand(l.Key, r, c.asks(ctx, r)), r.OpenWireKey()
			default:
				n.Do = letterDo(l, r, false)
			}
		}
		s.NeedsYou = append(s.NeedsYou, n)
	}
	return nil
}

// unserved reports whether there are jobs that a serve would do, and none is alive.
func (s *Status) unserved() bool {
	return len(s.Serves) == 0 && slices.ContainsFunc(s.Jobs, func(v JobView) bool { return v.State.Home == "" })
}

// OnceOnly reports whether all jobs are lines that daybook once guards: then no serve is missed, and whether a line was
// started at all is for whoever starts it to say.
func (s Status) OnceOnly() bool {
	return len(s.Jobs) > 0 && !slices.ContainsFunc(s.Jobs, func(v JobView) bool { return v.State.Home != daybook.HomeOnce })
}

// idle finds the applications of which no process is alive.
func (s *Status) idle(nodes []daybook.Node) {
	for _, v := range s.Jobs {
		home := v.State.Home
		if home == "" || home == daybook.HomeOnce || slices.ContainsFunc(s.Idle, func(n daybook.Node) bool { return n.Role == home }) ||
			len(aliveNodes(nodes, home, s.At)) > 0 {
			continue
		}
		last := daybook.Node{Role: home}
		for _, n := range nodes {
			if n.Role == home && n.SeenAt.After(last.SeenAt) {
				last = n
			}
		}
		s.Idle = append(s.Idle, last)
	}
}

// late finds live runs that are behind.
func (s *Status) late(live []*daybook.Run, views map[string]JobView, wanted func(string) bool) {
	for _, r := range live {
		v := views[r.Job]
		if v.State.RenamedTo != "" {
			v = views[v.State.RenamedTo]
		}
		if !wanted(r.Job) || r.Rests || r.Reason == daybook.ReasonNextZone || r.Parent != "" || r.Again || r.Lane != daybook.LaneLive || r.Home == daybook.HomeOnce || v.State.Paused || r.Hold == daybook.ReasonPaused || r.Hold == daybook.ReasonFrozen {
			continue
		}
		grace, longest := daybook.DefaultGrace, time.Duration(0)
		if v.Job != nil {
			grace, longest = v.Job.Expect.Grace, v.Job.Expect.MaxRuntime
		}
		since := r.NotBefore
		if r.FannedOut() && v.Job != nil && v.Job.Zone == daybook.ZoneOfSubject {
			since = r.ClaimedAt // when it listed last
		}
		if r.FrozenUntil.After(since) { // it could not start before
			since = r.FrozenUntil
		}
		behind := s.At.Sub(since)
		over := behind > grace
		if behind <= onTime {
			continue
		}
		if r.State == daybook.Running && r.Attempts <= 1 {
			// It is at work, and was on time: no more can be asked before its grace, or for P1 its longest time, is over.
			tooLong := longest > 0 && s.At.Sub(r.ClaimedAt) > longest
			if r.Priority == daybook.P0 && !over || r.Priority != daybook.P0 && !tooLong {
				continue
			}
		}
		s.Late = append(s.Late, LateRun{Key: r.Key, Job: r.Job, Priority: r.Priority, Since: since, Over: over, Run: r})
	}
}

// unplanned finds fires that passed and that no scheduler has decided.
func (s *Status) unplanned() {
	for _, v := range s.Jobs {
		if v.known.schedule == nil || v.State.Paused || v.State.Home == daybook.HomeOnce || v.State.Cursor.IsZero() {
			continue
		}
		for f := range v.known.schedule.Between(v.State.Cursor, s.At) {
			key := daybook.KeyParts{Job: v.Name, Window: f.Window.Label}.Key()
			if f.Skip != "" || slices.ContainsFunc(v.Recent, func(r *daybook.Run) bool { return answers(r, f.Window.Label) }) {
				continue
			}
			if behind := s.At.Sub(f.At); behind > onTime {
				s.Late = append(s.Late, LateRun{Key: key, Job: v.Name, Priority: v.Job.Priority, Since: f.At, Over: behind > v.Job.Expect.Grace})
			}
			break
		}
	}
}

// silent finds jobs without a good window for too long. Silence is measured in business windows: it begins with the
// first fire behind the last good window, so that a weekend without fires is none.
func (s *Status) silent() {
	for _, v := range s.Jobs {
		if v.known.schedule == nil || v.State.Paused || v.State.Home == daybook.HomeOnce || v.Job.Schedule == "" || v.Job.Work == daybook.Long || v.Job.Expect.MaxSilence <= 0 {
			continue
		}
		base := v.State.FirstSeen
		for _, at := range []time.Time{v.State.Since, v.State.PausedAt} {
			if at.After(base) {
				base = at
			}
		}
		if v.LastGood.Key != "" {
			if w, err := v.known.schedule.WindowOf(v.LastGood.Key.Parts().Window); err == nil {
				if _, last, ok := lastFire(v.known.schedule, w); ok && last.At.After(base) {
					base = last.At
				}
			}
		}
		slack := max(v.Job.Expect.MaxSilence-v.known.schedule.Distance(), 0)
		for f := range v.known.schedule.Between(base, s.At.Add(-slack)) {
			if f.Skip == "" {
				s.NeedsYou = append(s.NeedsYou, Need{Priority: v.Job.Priority, Kind: "silent", Job: v.Name, Text: silentText(v, s.At), Since: f.At,
					Do: command("daybook job show %s", v.Name)})
				break
			}
		}
	}
}

// standing adds what stands in the way: holds, faults, P0 windows past their grace, and that nobody executes.
func (s *Status) standing() {
	for _, l := range s.Late {
		if l.Over && l.Priority == daybook.P0 {
			s.NeedsYou = append(s.NeedsYou, Need{Priority: l.Priority, Kind: "late", Job: l.Job, Key: l.Key, Text: lateRunText(l, s.At), Since: l.Since,
				Do: command("daybook key show %s", l.Key), Run: l.Run})
		}
	}
	for _, v := range s.Jobs {
		if v.Fault == "" {
			continue
		}
		n := Need{Priority: daybook.P1, Kind: "fault", Job: v.Name, Text: faultText(v), Since: v.State.FaultAt, Do: checkDo}
		if v.Job != nil {
			n.Priority = v.Job.Priority
		}
		s.NeedsYou = append(s.NeedsYou, n)
	}
	for _, h := range s.Holds {
		s.NeedsYou = append(s.NeedsYou, Need{Priority: daybook.P0, Kind: "held", Text: holdText(h, s.Restored), Since: h.Since, Do: endHoldDo(h, s.Restored)})
	}
	for _, n := range s.Idle {
		s.NeedsYou = append(s.NeedsYou, Need{Priority: daybook.P0, Kind: "nobody executes", Text: idleText(n, s.At), Since: n.SeenAt, Do: daybook.Say("start %s", n.Role)})
	}
	if s.unserved() {
		s.NeedsYou = append(s.NeedsYou, Need{Priority: daybook.P0, Kind: "nobody executes", Text: nobodyText(s.SeenAt, s.At), Since: s.SeenAt, Do: serveDo})
	}
	slices.SortStableFunc(s.Late, func(a, b LateRun) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.Since.Compare(b.Since), strings.Compare(string(a.Key), string(b.Key)))
	})
}

// sort puts P0 first, then the oldest.
func (s *Status) sort() {
	slices.SortStableFunc(s.NeedsYou, func(a, b Need) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.Since.Compare(b.Since))
	})
}

// figures counts, and looks ahead.
func (s *Status) figures() {
	for _, v := range s.Jobs {
		if v.NextKey != "" && v.State.Home != daybook.HomeOnce && !v.State.Paused && v.Next.At.Sub(s.At) <= lookAhead {
			s.Next = append(s.Next, NextFire{Job: v.Name, Fire: v.Next, Key: v.NextKey})
		}
		if v.DueKey == "" || v.State.Paused || v.State.Home == daybook.HomeOnce {
			continue
		}
		state := daybook.State("")
		for _, r := range v.Recent {
			if r.Key != v.DueKey {
				continue
			}
			state = r.State
			for _, cover := range v.Recent {
				if r.State == daybook.Coalesced && cover.Key == r.CoveredBy {
					state = cover.State
				}
			}
		}
		if state == daybook.Skipped {
			continue
		}
		s.Of++
		if state == daybook.Done {
			s.Done++
		}
	}
	slices.SortStableFunc(s.Next, func(a, b NextFire) int { return a.Fire.At.Compare(b.Fire.At) })
}

// judge gives the verdict.
func (s *Status) judge(letters int) {
	var no, unknown []daybook.Text
	if letters > 0 {
		no = append(no, lettersText(letters))
	}
	for _, n := range s.NeedsYou {
		switch n.Kind {
		case "late":
			no = append(no, about(n.Key, n.Text))
		case "serial stuck":
			no = append(no, about(n.Key, n.Text))
		case "silent", "fault":
			no = append(no, about(n.Job, n.Text))
		case "held":
			no = append(no, n.Text)
		case "nobody executes":
			if n.Key != "" {
				n.Text = about(n.Key, n.Text)
			}
			unknown = append(unknown, n.Text)
		}
	}
	if len(s.Jobs) == 0 {
		unknown = append(unknown, noJobsText())
	}
	for _, l := range s.Late {
		if !l.Over || l.Priority != daybook.P0 {
			unknown = append(unknown, about(l.Key, lateRunText(l, s.At)))
		}
	}
	switch {
	case len(no) > 0:
		s.Ran = Judgement{Verdict: VerdictNo, Because: append(no, unknown...)}
	case len(unknown) > 0:
		s.Ran = Judgement{Verdict: VerdictNotKnown, Because: unknown}
	default:
		s.Ran = Judgement{Verdict: VerdictYes}
	}
}
