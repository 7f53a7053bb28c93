package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// Level says how much a finding matters.
type Level string

// Levels.
const (
	LevelOK   Level = "ok"   // looked at, and sound
	LevelWarn Level = "warn" // it will matter
	LevelBad  Level = "bad"  // something does not work, or is not known to
)

// Finding is one thing the doctor looked at.
type Finding struct {
	Level Level
	What  daybook.Text
	Do    daybook.Text // what to do about it; zero with ok
}

// Limits of health.
const (
	horizonMin    = 45 * 24 * time.Hour // a business calendar must reach this far
	offsetMax     = 5 * time.Second     // of a node's clock against the database's
	offsetTold    = time.Second         // of the same: it drifts
	letterMax     = 24 * time.Hour      // open letters
	walMax        = 256 << 20           // bytes of SQLite's write-ahead log
	accountedDays = 7 * 24 * time.Hour  // how far back windows are compared with rows
	accountedMax  = 2000                // windows of one job that are compared
	plannedWithin = 5 * time.Minute     // a scheduler decides what is due
)

// Doctor looks at the installation and says what is wrong with it, and what was looked at and is sound: the bad first.
// Errors: CodeUnavailable, the ledger cannot be read.
func (c *Control) Doctor(ctx context.Context) ([]Finding, error) {
	d := doctor{c: c, now: c.now()}
	for _, look := range []func(context.Context) error{d.ledger, d.nodes, d.holds, d.serial, d.letters, d.drills, d.subjects, d.jobs} {
		if err := look(ctx); err != nil {
			return nil, err
		}
	}
	rank := map[Level]int{LevelBad: 0, LevelWarn: 1, LevelOK: 2}
	slices.SortStableFunc(d.found, func(a, b Finding) int { return rank[a.Level] - rank[b.Level] })
	return d.found, nil
}

type doctor struct {
	c     *Control
	now   time.Time
	alive []daybook.Node
	open  []daybook.Letter
	found []Finding
}

func (d *doctor) add(level Level, what, do daybook.Text) {
	d.found = append(d.found, Finding{Level: level, What: what, Do: do})
}

func (d *doctor) ledger(ctx context.Context) error {
	info, err := d.c.s.Info(ctx)
	if err != nil {
		return err
	}
	d.add(LevelOK, ledgerText(info), daybook.Text{})
	if info.WALBytes > walMax {
		d.add(LevelWarn, walText(info.WALBytes), walDo)
	}
	return nil
}

func (d *doctor) nodes(ctx context.Context) error {
	nodes, err := d.c.s.Nodes(ctx)
	if err != nil {
		return err
	}
	d.alive = aliveNodes(nodes, "", d.now)
	counts, err := d.c.s.Counts(ctx)
	if err != nil {
		return err
	}
	if len(d.alive) == 0 {
		once, err := d.onceOnly(ctx)
		if err != nil {
			return err
		}
		if once {
			d.onceLedger(counts)
			return nil
		}
		seen := time.Time{}
		for _, n := range nodes {
			if n.Role == "serve" && n.SeenAt.After(seen) {
				seen = n.SeenAt
			}
		}
		d.add(LevelBad, idleQueueText(nobodyText(seen, d.now), counts, d.now), serveDo)
		return nil
	}
	if late := d.now.Sub(counts.OldestDue); !counts.OldestDue.IsZero() && late > plannedWithin {
		d.add(LevelWarn, queueText(late), queueDo)
	}
	here, _ := calendar.TZData()
	sound := true
	for _, n := range d.alive {
		found := differences(n, d.alive)
		sound = sound && len(found) == 0
		d.found = append(d.found, found...)
	}
	if sound {
		d.add(LevelOK, nodesText(d.alive, here), daybook.Text{})
	}
	return nil
}

// onceOnly reports whether all jobs are lines that daybook once guards.
func (d *doctor) onceOnly(ctx context.Context) (bool, error) {
	states, err := d.c.s.JobStates(ctx)
	states = slices.DeleteFunc(states, func(st daybook.JobState) bool { return !st.RetiredAt.IsZero() })
	return len(states) > 0 && !slices.ContainsFunc(states, func(st daybook.JobState) bool { return st.Home != daybook.HomeOnce }), err
}

// onceLedger looks at a ledger that no serve works on: what waits there waits for its line.
func (d *doctor) onceLedger(counts daybook.Counts) {
	if n := counts.Live[daybook.Scheduled] + counts.Live[daybook.Retryable]; n > 0 {
		d.add(LevelWarn, onceWaitsText(n), onceWaitsDo)
		return
	}
	d.add(LevelOK, onceOnlyText(), daybook.Text{})
}

func (d *doctor) holds(ctx context.Context) error {
	holds, err := d.c.s.Holds(ctx)
	if err != nil {
		return err
	}
	r, err := d.c.restored(ctx, holds)
	if err != nil {
		return err
	}
	for _, h := range holds {
		d.add(LevelBad, holdText(h, r), endHoldDo(h, r))
	}
	if len(holds) == 0 {
		d.add(LevelOK, noHoldsText(), daybook.Text{})
	}
	return nil
}

func (d *doctor) letters(ctx context.Context) error {
	letters, err := d.c.s.Letters(ctx, true, maxListed)
	if err != nil {
		return err
	}
	d.open = letters
	old := 0
	for _, l := range letters {
		if d.now.Sub(l.OpenedAt) > letterMax {
			old++
		}
	}
	switch {
	case old > 0:
		d.add(LevelBad, oldLettersText(old), lettersDo)
	case len(letters) > 0:
		d.add(LevelWarn, lettersText(len(letters)), lettersDo)
	default:
		d.add(LevelOK, noLettersText(), daybook.Text{})
	}
	return nil
}

func (d *doctor) jobs(ctx context.Context) error {
	states, err := d.c.s.JobStates(ctx)
	if err != nil {
		return err
	}
	if len(states) == 0 {
		d.add(LevelWarn, noJobsText(), noJobsDo)
		return nil
	}
	calendars := map[string]bool{}
	sound := true
	touching := 0 // money
	for _, st := range states {
		before := len(d.found)
		k := d.c.read(st)
		if k.retired() && k.state.RenamedTo != "" {
			continue // another job carries it on
		}
		if k.retired() {
			if err := d.leftOpen(ctx, k); err != nil {
				return err
			}
		} else {
			if k.job != nil && k.job.Priority == daybook.P0 {
				touching++
			}
			d.faulty(k)
			d.horizon(k, calendars)
			d.behind(k)
			if err := d.accounted(ctx, k); err != nil {
				return err
			}
		}
		sound = sound && len(d.found) == before
	}
	if once, _ := d.onceOnly(ctx); sound && !once { // which windows lines have is for cron to say
		d.add(LevelOK, jobsText(len(states)), daybook.Text{})
	}
	d.told(touching)
	return nil
}

// told looks whether anybody is told of what touches money. Without a file nothing says who is.
func (d *doctor) told(touching int) {
	switch channels, known := d.c.o.Told(daybook.P0); {
	case !known || touching == 0:
	case len(channels) == 0:
		d.add(LevelWarn, noChannelText(touching), noChannelDo)
	default:
		d.add(LevelOK, channelsText(channels), daybook.Text{})
	}
}

// leftOpen finds runs of a job that nobody defines any more.
func (d *doctor) leftOpen(ctx context.Context, k known) error {
	runs, err := d.c.s.Runs(ctx, daybook.Filter{Job: k.state.Name, Limit: recentRuns})
	if err != nil {
		return err
	}
	var open []string
	for _, r := range runs {
		if r.State.Live() {
			open = append(open, string(r.Key))
		}
	}
	for _, l := range d.open {
		if l.Job == k.state.Name {
			open = append(open, string(l.Key))
		}
	}
	if len(open) > 0 {
		d.add(LevelWarn, retiredText(k.state.Name, open), retiredDo)
	}
	return nil
}

func (d *doctor) faulty(k known) {
	switch {
	case k.state.Fault != "":
		d.add(LevelBad, jobFaultText(k.state.Name, oneLine(k.state.Fault)), checkDo)
	case k.fault != nil:
		d.add(LevelBad, jobFaultText(k.state.Name, k.fault), checkDo)
	}
}

// horizon looks at each business calendar once.
func (d *doctor) horizon(k known, seen map[string]bool) {
	if k.job == nil || k.job.Calendar == "" || seen[k.job.Calendar] {
		return
	}
	days, err := d.c.o.Days(k.job.Calendar)
	if err != nil {
		return // that is a fault of the job, told there
	}
	seen[k.job.Calendar] = true
	_, last := days.Horizon()
	end, err := time.Parse(time.DateOnly, last)
	if err == nil && end.Before(d.now.Add(horizonMin)) {
		d.add(LevelWarn, horizonText(k.job.Calendar, last), horizonDo)
	}
}

// behind finds a job whose due windows nobody decides.
func (d *doctor) behind(k known) {
	if k.schedule == nil || k.state.Home == daybook.HomeOnce || k.state.Fault != "" || k.state.Cursor.IsZero() {
		return
	}
	for f := range k.schedule.Between(k.state.Cursor, d.now.Add(-plannedWithin)) {
		d.add(LevelBad, behindText(k.state.Name, f, d.now), serveDo)
		return
	}
}

// accounted compares the last days of a job with its rows: every window behind the cursor has one, or lies in a span.
func (d *doctor) accounted(ctx context.Context, k known) error {
	if k.schedule == nil || k.state.Home == daybook.HomeOnce || k.job.Schedule == "" || k.job.Missed == daybook.NeverMissed {
		return nil
	}
	from := d.now.Add(-accountedDays)
	for _, at := range []time.Time{k.state.FirstSeen, k.state.Since} {
		if at.After(from) {
			from = at
		}
	}
	var windows []calendar.Due
	for w := range k.schedule.Due(from, k.state.Cursor) {
		if windows = append(windows, w); len(windows) > 2*accountedMax {
			windows = append(windows[:0], windows[len(windows)-accountedMax:]...)
		}
	}
	if len(windows) == 0 {
		return nil
	}
	accounted := make(map[string]bool, len(windows)) // by label
	for _, name := range k.state.Names() {
		missing := make(map[daybook.Key]bool, len(windows))
		for _, w := range windows {
			missing[daybook.KeyParts{Job: name, Window: w.Window.Label}.Key()] = true
		}
		if err := d.strike(ctx, name, missing); err != nil {
			return err
		}
		spans, err := d.c.s.Spans(ctx, name, from)
		if err != nil {
			return err
		}
		for _, w := range windows {
			inSpan := slices.ContainsFunc(spans, func(sp daybook.Span) bool { return !w.Last.Before(sp.From) && !w.Last.After(sp.To) })
			if inSpan || !missing[daybook.KeyParts{Job: name, Window: w.Window.Label}.Key()] {
				accounted[w.Window.Label] = true
			}
		}
	}
	var holes []string
	for _, w := range windows {
		if !accounted[w.Window.Label] {
			holes = append(holes, string(daybook.KeyParts{Job: k.state.Name, Window: w.Window.Label}.Key()))
		}
	}
	if len(holes) > 0 {
		d.add(LevelBad, holesText(holes), holesDo)
	}
	return nil
}

// strike takes out the keys that have a row.
func (d *doctor) strike(ctx context.Context, job string, missing map[daybook.Key]bool) error {
	keys := sortedKeys(missing)
	first, last := keys[0], keys[len(keys)-1]
	after := daybook.Key(first[:len(first)-1]) // sorts right before the first
	for {
		runs, err := d.c.s.Runs(ctx, daybook.Filter{Prefix: job + ":", After: after, Limit: maxListed})
		if err != nil {
			return err
		}
		for _, r := range runs {
			delete(missing, r.Key)
		}
		if len(runs) < maxListed || strings.Compare(string(runs[len(runs)-1].Key), last) >= 0 {
			return nil
		}
		after = runs[len(runs)-1].Key
	}
}
