package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

func newRun(a *app) *cobra.Command {
	return noun("run", textRun, newRunList(a), newRunShow(a), newRunLogs(a), newRunWatch(a), newRunCancel(a), newRunReopen(a), newRunResolve(a), newUndo(a, textRunUndo))
}

func sortedNames(m map[string]int64) []string { return slices.Sorted(maps.Keys(m)) }

// listFlags bound a list.
type listFlags struct {
	limit int
	after string
}

func (o *listFlags) flags(cmd *cobra.Command) {
	cmd.Flags().IntVar(&o.limit, "limit", 100, "at most so many")
	cmd.Flags().StringVar(&o.after, "after", "", "go on behind this key, in the order of keys")
}

func newRunList(a *app) *cobra.Command {
	var job, state, date string
	var o listFlags
	cmd := &cobra.Command{
		Use: "list", Short: textRunList, Long: textRunListLong, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if date != "" {
				if _, err := time.Parse(time.DateOnly, date); err != nil {
					return daybook.Invalid("--date: %q is no date", daybook.Clip(date, 40)).WithHint("such as 2026-10-26")
				}
			}
			f := daybook.Filter{Job: job, State: daybook.State(state), From: date, To: date}
			return a.runsByFilter(cmd.Context(), f, o, daybook.Say("no run is like that"))
		},
	}
	f := cmd.Flags()
	f.StringVar(&job, "job", "", "of one job: its newest windows first")
	f.StringVar(&state, "state", "", "scheduled, running, retryable, done, dead, skipped, coalesced or cancelled")
	f.StringVar(&date, "date", "", "of one business date, YYYY-MM-DD")
	o.flags(cmd)
	return cmd
}

// runsByFilter lists runs, page by page up to the limit.
func (a *app) runsByFilter(ctx context.Context, f daybook.Filter, o listFlags, none daybook.Text) error {
	if o.limit < 1 {
		return daybook.Invalid("--limit %d: at least 1", o.limit)
	}
	return a.withControl(ctx, func(l *ledger, c *control.Control) error {
		g := &grid{tail: true, head: []string{"KEY", "STATE", "TRIES", "STARTED", "TOOK", "ERROR"}}
		f.After = daybook.Key(o.after)
		n, more, last := 0, false, daybook.Key("")
		for left := o.limit; left > 0; {
			f.Limit = min(left+1, 1000) // one more tells whether there are more
			runs, err := c.Runs(ctx, f)
			if err != nil {
				return err
			}
			full := len(runs) == f.Limit
			if more = full; len(runs) > left {
				runs = runs[:left]
			}
			for _, r := range runs {
				n, last = n+1, r.Key
				if a.flags.json {
					if err := a.printJSON(control.NewRunJSON(r)); err != nil {
						return err
					}
					continue
				}
				a.addRun(g, r)
			}
			left -= len(runs)
			byKey := f.Job == "" || f.Prefix != "" || f.From != "" || f.After != ""
			if !full || !byKey || len(runs) == 0 {
				break
			}
			f.After = last
		}
		if err := a.print(g); err != nil {
			return err
		}
		switch {
		case n == 0:
			a.say("%s", none)
		case more && (f.Job == "" || f.Prefix != "" || f.From != "" || f.After != ""):
			a.say("there are more: --limit N, or --after %s", last)
		case more:
			a.say("there are more: --limit N")
		}
		return nil
	})
}

func (a *app) addRun(g *grid, r *daybook.Run) {
	failed := daybook.Say(" ")
	if r.State != daybook.Done && r.LastError != "" {
		failed = daybook.Say("%s", a.stored(daybook.Clip(oneLine(r.LastError), 160), r.Zone))
	}
	if r.Subjects != nil && r.Letter == nil {
		failed = control.SubjectsText(r)
	}
	if r.State == daybook.Coalesced {
		failed = daybook.Say("covered by %s", r.CoveredBy)
	}
	g.add(string(r.Key), stateCell(r), fmt.Sprint(r.Attempts), a.moment(control.StartedAt(r), r.Zone), took(r), failed)
}

func newRunShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show KEY", Short: textRunShow, Args: exactly("KEY"), ValidArgsFunction: a.completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runShow(cmd.Context(), daybook.Key(args[0]))
		},
	}
}

// runShowJSON is daybook/run.v1 with the attempts.
type runShowJSON struct {
	*runJSON
	Asked *askedJSON    `json:"asked_to_end,omitempty"`
	Tries []attemptJSON `json:"tries"`
}

// askedJSON is who asked for the end of a run.
type askedJSON struct {
	At     time.Time   `json:"at,omitzero"`
	By     string      `json:"by,omitempty"`
	Reason string      `json:"reason,omitempty"`
	With   daybook.Key `json:"with,omitempty"` // the run that was ended, and this one with it
}

func newAskedJSON(a *control.AskedToEnd) *askedJSON {
	if a == nil {
		return nil
	}
	return &askedJSON{a.At, a.By, a.Note, a.With}
}

func (a *app) runShow(ctx context.Context, key daybook.Key) error {
	return a.withControl(ctx, func(l *ledger, c *control.Control) error {
		r, err := c.Run(ctx, key)
		if err != nil {
			return err
		}
		lock, err := c.Lock(ctx, r)
		if err != nil {
			return err
		}
		waits, err := c.Obstacles(ctx, r)
		if err != nil {
			return err
		}
		asked, err := c.AskedToEnd(ctx, r)
		if err != nil {
			return err
		}
		tries, err := c.Attempts(ctx, key)
		if err != nil {
			return err
		}
		if a.flags.json {
			j := runShowJSON{control.NewRunJSON(r), newAskedJSON(asked), []attemptJSON{}}
			j.Lock, j.WaitsFor = control.NewLockJSON(lock), control.NewObstaclesJSON(waits)
			for _, t := range tries {
				j.Tries = append(j.Tries, newAttemptJSON(t))
			}
			return a.printJSON(j)
		}
		w := bufio.NewWriter(a.Stdout)
		a.describeRun(w, r, lock, asked)
		a.waitRows(w, r, waits)
		turn, err := c.Turn(ctx, r)
		if err != nil {
			return err
		}
		if !turn.IsZero() {
			a.row(w, "turn", "%s", turn)
		}
		undone, err := c.UndoneText(ctx, r)
		if err != nil {
			return err
		}
		if !undone.IsZero() {
			a.row(w, "undone", "%s", undone)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		hosts, err := hosts(ctx, c)
		if err != nil {
			return err
		}
		loc := a.zoneOf(r.Zone)
		g := &grid{tail: true, head: []string{"TRY", "BEGAN", "TOOK", "OUTCOME", "NODE", "ERROR"}}
		for _, t := range tries {
			name := daybook.Say("%d", t.Number)
			if t.Probe {
				name = daybook.Say("question")
			}
			began, took := t.BegunAt, daybook.Text{}
			if began.IsZero() {
				began = t.ClaimedAt
			}
			if !t.EndedAt.IsZero() && !began.IsZero() {
				took = short(t.EndedAt.Sub(began))
			}
			outcome := control.ResultText(t.Result)
			if t.Detail != "" {
				outcome = daybook.Say("%s (%s)", outcome, daybook.Stored(oneLine(t.Detail)))
			}
			g.add(name, moment{began, loc}, took, outcome, hosts.Replace(t.Node), daybook.Say("%s ", a.stored(t.Error, r.Zone)))
		}
		if len(tries) > 0 {
			if _, err := fmt.Fprintln(a.Stdout); err != nil {
				return err
			}
		}
		if err := a.print(g); err != nil {
			return err
		}
		a.next("daybook key show " + string(key))
		return nil
	})
}

func (a *app) describeRun(w *bufio.Writer, r *daybook.Run, lock *daybook.Lock, asked *control.AskedToEnd) {
	loc := a.zoneOf(r.Zone)
	row := func(label, format string, args ...any) { a.row(w, label, format, args...) }
	fmt.Fprintln(w, a.lang.F("%s  %s  %s", r.Key, r.Priority, stateText(r)))
	row("window", "%s, business date %s", bounds(r.Window, a.zoneOf(r.Zone)), r.Window.Date)
	if r.Subject != "" {
		row("subject", "%s", r.Subject)
	}
	if r.State.Live() && r.State != daybook.Running {
		row("due", "%s", stamp(r.Due, loc))
	}
	if r.Serial != "" {
		row("serial key", "%s%s", r.Serial, lockText(r, lock, loc))
	}
	if began := control.StartedAt(r); !began.IsZero() {
		row("started", "%s, attempt %d", stamp(began, loc), r.Attempts)
	}
	if asked != nil {
		row("asked", "%s", asked.Text(loc))
	}
	if !r.EndedAt.IsZero() && !r.State.Live() {
		row("ended", "%s", stamp(r.EndedAt, loc))
	}
	if r.CoveredBy != "" {
		row("covered by", "%s", r.CoveredBy)
	}
	a.subjectRows(row, r)
	a.stepRows(row, r)
	if l := r.Letter; l != nil {
		row("letter", "%s, %s, since %s", l.Kind, l.State, stamp(l.OpenedAt, loc))
	}
	if settled := r.Letter != nil && r.Letter.State != daybook.LetterOpen && r.State.Live() && r.Letter.Error == r.LastError; r.LastError != "" && r.State != daybook.Done && !settled {
		row("last error", "%s", a.stored(daybook.Clip(r.LastError, 500), r.Zone))
	}
	row("triggers", "%d, the first by %s", r.Triggers, byDoor(r.FirstSource, r.FirstActor))
	if len(r.Counts) > 0 {
		row("reported", "%s", counts(r.Counts))
	}
	if len(r.Result) > 0 {
		row("result", "%s", daybook.Clip(string(r.Result), 500))
	}
	if r.PayloadHash != "" {
		row("payload", "sha256 %s", r.PayloadHash)
	}
	if !r.PrunedAt.IsZero() {
		row("pruned", "%s: attempts and output are gone, payload and result too unless they may be needed again", stamp(r.PrunedAt, loc))
	}
}

// waitRows tell who stands in the way of a run, and what only a person can do about it.
func (a *app) waitRows(w *bufio.Writer, r *daybook.Run, waits []control.Obstacle) {
	for i, o := range waits {
		if o.Serial == "" || o.Serial != r.Serial { // else the serial key says it
			a.row(w, "waits for", "%s", o.Text(a.zoneOf(r.Zone)))
		}
		if o.Person && (i == 0 || o.Do.String() != waits[i-1].Do.String()) {
			a.row(w, "needs you", "%s: %s", o.Why, o.Do)
		}
	}
}

// subjectRows tell how the subjects of a run stand.
func (a *app) subjectRows(row func(label, format string, args ...any), r *daybook.Run) {
	n := r.Subjects
	if n == nil {
		return
	}
	row("subjects", "%s", control.SubjectsText(r))
	if said := control.UnderWayText(n); !said.IsZero() {
		row("under way", "%s", said)
	}
	if turn := control.TurnText(r); !turn.IsZero() {
		row("turn", "%s", turn)
	}
	if n.Repeated > 0 {
		row("repeated", "%s", daybook.Count(int(n.Repeated), "%d row of the listing named a subject that it had named before: it is done once",
			"%d rows of the listing named a subject that it had named before: each is done once"))
	}
	if n.Faulty > 0 {
		row("faulty", "%s", daybook.Count(int(n.Faulty), "%d row of the listing names no subject: %s", "%d rows of the listing name no subject: %s",
			daybook.Clip(oneLine(n.Fault), 300)))
	}
	if n.Vanished > 0 {
		row("vanished", "%s", daybook.Count(int(n.Vanished), "%d subject of an earlier listing is not named any more; its run stands as it is",
			"%d subjects of an earlier listing are not named any more; their runs stand as they are"))
	}
}

func byDoor(s daybook.Source, actor string) daybook.Text {
	if actor == "" {
		return daybook.Say("%s", s)
	}
	return daybook.Say("%s (%s)", actor, s)
}

func newRunWatch(a *app) *cobra.Command {
	var status bool
	var atMost time.Duration
	cmd := &cobra.Command{
		Use: "watch KEY", Short: textRunWatch, Long: textRunWatchLong, Args: exactly("KEY"), ValidArgsFunction: a.completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("for") && atMost <= 0 {
				return daybook.Invalid("--for %s is no time to wait", atMost).WithHint("such as --for 10m")
			}
			return a.runWatch(cmd.Context(), daybook.Key(args[0]), atMost, status)
		},
	}
	cmd.Flags().BoolVar(&status, "exit-status", false, "exit 1 unless the run is done")
	cmd.Flags().DurationVar(&atMost, "for", 0, "at most so long: exit 124, and the run goes on")
	return cmd
}

func (a *app) runWatch(ctx context.Context, key daybook.Key, atMost time.Duration, status bool) error {
	return a.withControl(ctx, func(l *ledger, c *control.Control) error {
		r, err := a.follow(ctx, c, key, atMost, func(r *daybook.Run) error {
			switch {
			case !r.State.Live() && r.State != daybook.Coalesced, r.WaitsForPerson():
				return nil // ended tells it
			case a.flags.json:
				return a.printJSON(control.NewRunJSON(r))
			}
			_, err := fmt.Fprintln(a.Stdout, a.stepLine(r))
			return err
		})
		if err != nil {
			return err
		}
		return a.ended(ctx, c, r, status)
	})
}

func newRunCancel(a *app) *cobra.Command {
	return a.actCommand("cancel KEY --reason R", textRunCancel, textRunCancelLong, act{name: "cancel", do: (*control.Control).Cancel, rule: (*daybook.Run).Cancel, complete: a.completeKeys})
}

func newRunReopen(a *app) *cobra.Command {
	return a.actCommand("reopen KEY --reason R", textRunReopen, textRunReopenLong, act{name: "reopen", do: (*control.Control).Reopen, rule: (*daybook.Run).Reopen, complete: a.completeKeys})
}

// act is something that is done to one run, with a reason.
type act struct {
	name     string
	do       func(*control.Control, context.Context, control.Person, daybook.Key, string) (control.Acted, error)
	rule     func(r *daybook.Run, who, note string, now time.Time) (daybook.Transition, error)
	complete cobra.CompletionFunc
}

func (a *app) actCommand(use, short, long string, t act) *cobra.Command {
	var note, confirm string
	var dry bool
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: exactly("KEY"), ValidArgsFunction: t.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, key := cmd.Context(), daybook.Key(args[0])
			if err := needReason(note, daybook.Say("%s", t.name)); err != nil {
				return err
			}
			return a.withControl(ctx, func(l *ledger, c *control.Control) error {
				if dry {
					return a.wouldAct(ctx, c, key, t, note)
				}
				if err := a.confirmAct(ctx, c, key, t, note, confirm); err != nil {
					return err
				}
				done, err := t.do(c, ctx, a.person(), key, note)
				if err != nil {
					return err
				}
				return a.tellActed(done)
			})
		},
	}
	reasonFlag(cmd, &note)
	cmd.Flags().StringVar(&confirm, "confirm", "", textFlagConfirm)
	writing(cmd, &dry)
	return cmd
}

// confirmAct shows what an act on a run does, and has it confirmed by its key where it touches money; of anything else
// the reason is enough. What a rule refuses is told before anybody is asked.
func (a *app) confirmAct(ctx context.Context, c *control.Control, key daybook.Key, t act, note, given string) error {
	r, err := c.Run(ctx, key)
	if err != nil || r.Priority != daybook.P0 && given == "" {
		return err
	}
	told := control.WouldEnd(r)
	if t.name != "cancel" || r.State != daybook.Running {
		tr, refused := t.rule(r, a.person().Name, note, a.Now())
		if refused != nil {
			return nil // and the act says why
		}
		told = wouldBe(key, t, r.State, tr.To)
	}
	a.plan("%s", told)
	return a.typed(daybook.Say("%s", t.name), r.Key, given)
}

func wouldBe(key daybook.Key, t act, from, to daybook.State) daybook.Text {
	if from == to {
		return daybook.Say("%s  would be %s", key, pastOf[t.name])
	}
	return daybook.Say("%s  would be %s: %s → %s", key, pastOf[t.name], from, to)
}

// wouldAct tells what an act would do, by the same rule that carries it out.
func (a *app) wouldAct(ctx context.Context, c *control.Control, key daybook.Key, t act, note string) error {
	r, err := c.Run(ctx, key)
	if err != nil {
		return err
	}
	j := actedJSON{Schema: "daybook/act.v1", Key: key, Act: t.name, From: r.State, To: r.State, DryRun: true, Run: control.Nested(r)}
	told := daybook.Text{}
	if t.name == "cancel" && r.State == daybook.Running {
		j.Asked, told = true, control.WouldEnd(r)
	} else {
		tr, err := t.rule(r, a.person().Name, note, a.Now())
		if err != nil {
			return err
		}
		j.To, told = tr.To, wouldBe(key, t, r.State, tr.To)
	}
	j.Message = told.String()
	if a.flags.json {
		return a.printJSON(j)
	}
	if err := a.line("%s", told); err != nil {
		return err
	}
	a.dryRun()
	return nil
}

var pastOf = map[string]daybook.Text{"cancel": daybook.Say("cancelled"), "reopen": daybook.Say("reopened"), "dismiss": daybook.Say("dismissed"), "resolve": daybook.Say("resolved"), "undo": daybook.Say("undone")}

func (a *app) tellActed(t control.Acted) error {
	if a.flags.json {
		return a.printJSON(control.NewActedJSON(t))
	}
	next := t.Do()
	t.Run = a.shownRun(t.Run)
	if err := a.line("%s", t.Text()); err != nil {
		return err
	}
	if t.NobodyExecutes {
		a.say(msgRecorded)
	}
	a.nextText(next)
	return nil
}
