package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

func newDead(a *app) *cobra.Command {
	return noun("dead", textDead, newDeadList(a), newDeadShow(a), newDeadReplay(a), newDeadDismiss(a), newUndo(a, textDeadUndo))
}

func newDeadList(a *app) *cobra.Command {
	var all bool
	var group string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: textDeadList, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if group != "" && group != "error" {
				return daybook.Invalid("--group: %q is not known", daybook.Clip(group, 40)).WithHint("--group error")
			}
			if limit < 1 || limit > 1000 {
				return daybook.Invalid("--limit %d: 1 to 1000", limit)
			}
			return a.deadList(cmd.Context(), all, group != "", limit)
		},
	}
	f := cmd.Flags()
	f.StringVar(&group, "group", "", "error: one line for each kind of error")
	f.BoolVar(&all, "all", false, "also closed letters, the newest first")
	f.IntVar(&limit, "limit", 1000, "at most so many, 1,000 at the most")
	return cmd
}

func (a *app) deadList(ctx context.Context, all, grouped bool, limit int) error {
	return a.withControl(ctx, func(l *ledger, c *control.Control) error {
		letters, err := c.Letters(ctx, !all, limit)
		if err != nil {
			return err
		}
		zones, err := jobZones(ctx, c)
		if err != nil {
			return err
		}
		if grouped {
			return a.deadGroups(letters, zones)
		}
		g := &grid{tail: true, head: []string{"SINCE", "KEY", "PRIORITY", "KIND", "STATE", "ERROR"}}
		for _, letter := range letters {
			if a.flags.json {
				if err := a.printJSON(control.NewLetterJSON(letter)); err != nil {
					return err
				}
				continue
			}
			g.add(a.moment(letter.OpenedAt, zones[letter.Job]), string(letter.Key), string(letter.Priority), daybook.Say("%s", letter.Kind), daybook.Say("%s", letter.State), daybook.Say("%s", a.stored(letter.Error, zones[letter.Job])))
		}
		if err := a.print(g); err != nil {
			return err
		}
		if len(letters) == 0 {
			a.say("no dead letter is open")
			return nil
		}
		if len(letters) == limit {
			a.say("there may be more: --limit N")
		}
		a.next("daybook dead show " + string(letters[0].Key))
		return nil
	})
}

// jobZones returns the zone of every job.
func jobZones(ctx context.Context, c *control.Control) (map[string]string, error) {
	views, err := c.Jobs(ctx)
	zones := make(map[string]string, len(views))
	for _, v := range views {
		if v.Job != nil {
			zones[v.Name] = v.Job.Timezone
		}
	}
	return zones, err
}

// letterGroupJSON is daybook/letter-group.v1: letters that say the same.
type letterGroupJSON struct {
	Schema string             `json:"schema"`
	Kind   daybook.LetterKind `json:"kind"`
	Error  string             `json:"error"`
	Count  int                `json:"count"`
	Oldest time.Time          `json:"oldest"`
	Keys   []daybook.Key      `json:"keys"`
}

func (a *app) deadGroups(letters []daybook.Letter, zones map[string]string) error {
	var groups []*letterGroupJSON
	byError := map[string]*letterGroupJSON{}
	for _, l := range letters {
		id := string(l.Kind) + "\n" + l.Error
		g := byError[id]
		if g == nil {
			g = &letterGroupJSON{Schema: "daybook/letter-group.v1", Kind: l.Kind, Error: l.Error, Oldest: l.OpenedAt}
			byError[id] = g
			groups = append(groups, g)
		}
		g.Count++
		g.Keys = append(g.Keys, l.Key)
		if l.OpenedAt.Before(g.Oldest) {
			g.Oldest = l.OpenedAt
		}
	}
	slices.SortStableFunc(groups, func(x, y *letterGroupJSON) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), x.Oldest.Compare(y.Oldest))
	})
	g := &grid{head: []string{"COUNT", "KIND", "ERROR", "KEYS"}}
	for _, group := range groups {
		if a.flags.json {
			if err := a.printJSON(group); err != nil {
				return err
			}
			continue
		}
		names := make([]string, 0, 3)
		for _, k := range group.Keys[:min(3, len(group.Keys))] {
			names = append(names, string(k))
		}
		list := strings.Join(names, " ")
		if more := len(group.Keys) - len(names); more > 0 {
			list += " " + a.lang.F("and %d more", more)
		}
		g.add(fmt.Sprint(group.Count), daybook.Say("%s", group.Kind), daybook.Say("%s", a.stored(daybook.Clip(oneLine(group.Error), 120), zones[group.Keys[0].Job()])), list)
	}
	if err := a.print(g); err != nil {
		return err
	}
	if len(letters) == 0 {
		a.say("no dead letter is open")
	}
	return nil
}

func newDeadShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show KEY", Short: textDeadShow, Args: exactly("KEY"), ValidArgsFunction: a.completeLetters,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.deadShow(cmd.Context(), daybook.Key(args[0]))
		},
	}
}

// deadShowJSON is daybook/letter.v1 with the run, and what a replay would do.
type deadShowJSON struct {
	*letterJSON
	Replay daybook.Text `json:"replay,omitzero"`
	Run    *runJSON     `json:"run"`
	Output string       `json:"output,omitempty"`
}

func (a *app) deadShow(ctx context.Context, key daybook.Key) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		r, err := c.Run(ctx, key)
		if err != nil {
			return err
		}
		if r.Letter == nil {
			return daybook.NotFound("%s has no dead letter: it is %s", key, r.State).WithHint("daybook key show %s", key)
		}
		output, err := lastOutput(ctx, c, r)
		if err != nil {
			return err
		}
		undoing, err := c.Undoing(ctx, r)
		if err != nil {
			return err
		}
		open := r.Letter.State == daybook.LetterOpen
		plan := daybook.Text{}
		if open {
			plan = a.replayPlan(r)
		}
		if a.flags.json {
			j := deadShowJSON{control.NewLetterJSON(*r.Letter), plan, control.Nested(r), output}
			j.Run.Letter = nil
			return a.printJSON(j)
		}
		w := bufio.NewWriter(a.Stdout)
		a.describeLetter(w, r, undoing, plan, output)
		if err := w.Flush(); err != nil {
			return err
		}
		switch {
		case open && r.Letter.Kind == daybook.LetterUnknown:
			a.nextText(c.Resolving(ctx, r))
		case open && r.Letter.ByHand(): // its replay helps only once the job says how
			a.next(fmt.Sprintf("daybook dead dismiss %s --reason …", key))
		case open && !undoing.WaitsFor().IsZero() && !key.IsUndo():
			a.nextText(undoing.WaitsFor())
		case open:
			a.next("daybook dead replay " + string(key))
			if _, err := c.UndoPlan(ctx, a.person(), key, ""); err == nil { // else it would be refused
				a.next(fmt.Sprintf("daybook dead undo %s --reason …", key))
			}
			a.next(fmt.Sprintf("daybook dead dismiss %s --reason …", key))
		case r.Letter.State == daybook.LetterDismissed:
			a.next(fmt.Sprintf("daybook run reopen %s --reason …", key))
		}
		return nil
	})
}

// lastOutput is the end of what the last attempt printed.
func lastOutput(ctx context.Context, c *control.Control, r *daybook.Run) (string, error) {
	tries, err := c.Attempts(ctx, r.Key)
	if err != nil {
		return "", err
	}
	for i := len(tries) - 1; i >= 0; i-- {
		if tries[i].Probe || tries[i].Result == "" {
			continue
		}
		out, err := c.Output(ctx, r.Key, tries[i].Fence)
		lines := strings.Split(strings.TrimRight(out.Text, "\n"), "\n")
		const tail = 10
		if len(lines) > tail {
			lines = append([]string{"…"}, lines[len(lines)-tail:]...)
		}
		return strings.Join(lines, "\n"), err
	}
	return "", nil
}

func (a *app) describeLetter(w *bufio.Writer, r *daybook.Run, undoing *control.Undoing, plan daybook.Text, output string) {
	l, loc := r.Letter, a.zoneOf(r.Zone)
	row := func(label, format string, args ...any) { a.row(w, label, format, args...) }
	what := daybook.Say("dead letter")
	if l.Kind == daybook.LetterUnknown {
		what = daybook.Say("dead letter: whether it happened is unknown")
	}
	fmt.Fprintf(w, "%s  %s  %s %s\n", l.Key, l.Priority, a.mark("✕"), a.lang.F("%s, %s", what, l.State))
	row("since", "%s (%s ago)", stamp(l.OpenedAt, loc), short(a.Now().Sub(l.OpenedAt)))
	if l.State != daybook.LetterOpen {
		row("closed", "%s by %s: %s", stamp(l.ClosedAt, loc), whoever(l.ClosedBy), l.Note)
	}
	row("error", "%s", a.stored(l.Error, r.Zone))
	row("attempts", "%d, the last %s", r.Attempts, stamp(cmp.Or(r.EndedAt, l.OpenedAt), loc))
	a.stepRows(row, r)
	if undoing != nil {
		for _, e := range undoing.Effects {
			row("undo", "%s, wire key %s: %s", e.Step, e.WireKey, e.Text())
		}
	}
	if l.Refused > 0 {
		row("asked", "%s", daybook.Count(l.Refused, "%d trigger refused since", "%d triggers refused since"))
	}
	row("replay", "%s", plan)
	if output != "" {
		row("output", "of the last attempt")
		for line := range strings.SplitSeq(output, "\n") {
			fmt.Fprintf(w, "    %s\n", oneLine(line))
		}
	}
}

// whoever is the name of a person, if it is known.
func whoever(name string) daybook.Text {
	if name == "" {
		return daybook.Say("nobody known")
	}
	return daybook.Say("%s", name)
}

// replayPlan tells what a replay of a run would do, by the rule that carries it out.
func (a *app) replayPlan(r *daybook.Run) daybook.Text {
	if n := r.Subjects; r.FannedOut() && n != nil && n.UnderWay() == 0 && n.Letters > 0 {
		return daybook.Say("%s, each under the same key", daybook.Count(int(n.Letters), "the letter of %d subject", "the letters of %d subjects"))
	}
	switch tr, err := r.Replay(a.person().Name, "", a.Now()); {
	case err != nil && r.State == daybook.Dead:
		return daybook.Say("refused: %s", err)
	case err != nil:
		return daybook.Say("nothing to replay: it is %s", r.State)
	case tr.Effect != nil:
		return daybook.Say("same key, attempt %d, failures reset, wire key %s", r.Attempts+1, r.Key.WireKey(tr.Effect.Step, tr.Effect.Generation))
	}
	return daybook.Say("same key, attempt %d, failures reset", r.Attempts+1)
}

func newDeadReplay(a *app) *cobra.Command {
	var dry bool
	var note, plan, job string
	cmd := &cobra.Command{
		Use: "replay KEY…", Short: textDeadReplay, Long: textDeadReplayLong, ValidArgsFunction: a.completeLetters,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && plan == "" {
				return daybook.Invalid("%s: KEY is missing", cmd.CommandPath()).WithHint("daybook dead list shows what can be replayed")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case plan == newPlan && len(args) == 1 && strings.HasPrefix(args[0], "pl_"):
				plan, args = args[0], nil
			case plan != "" && len(args) > 0:
				return daybook.Invalid("both keys and a plan are given").WithHint("give one: a plan names its letters itself")
			case plan == "" && job != "":
				return daybook.Invalid("--job is for a plan").WithHint("daybook dead replay --plan --job %s", daybook.Clip(job, 64))
			}
			if plan != "" {
				return a.deadReplayPlan(cmd.Context(), plan, job, note, dry)
			}
			list := make([]daybook.Key, len(args))
			for i, k := range args {
				list[i] = daybook.Key(k)
			}
			return a.deadReplay(cmd.Context(), list, note, dry)
		},
	}
	reasonFlag(cmd, &note)
	writing(cmd, &dry)
	cmd.Flags().StringVar(&plan, "plan", "", "show all letters that can be replayed, as a plan with an id; with the id replay exactly these")
	cmd.Flags().Lookup("plan").NoOptDefVal = newPlan
	cmd.Flags().StringVar(&job, "job", "", "with --plan: the letters of one job")
	return cmd
}

// newPlan is --plan without an id.
const newPlan = "new"

// deadReplayPlan shows a plan, or does one.
func (a *app) deadReplayPlan(ctx context.Context, id, job, note string, dry bool) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		p, err := c.PlanReplay(ctx, job)
		if err != nil {
			return err
		}
		if id == newPlan || dry {
			zones, err := jobZones(ctx, c)
			if err != nil {
				return err
			}
			return a.showReplayPlan(p, zones)
		}
		if p.ID == id {
			if err := a.proceed(daybook.Say("replay")); err != nil {
				return err
			}
		}
		n, err := c.StartReplay(ctx, a.person(), id, job, note)
		if n > 0 || err == nil {
			a.say("%s", daybook.Count(n, "%d letter is replayed", "%d letters are replayed"))
		}
		return err
	})
}

func (a *app) showReplayPlan(p control.ReplayPlan, zones map[string]string) error {
	if a.flags.json {
		return a.printJSON(control.NewReplayPlanJSON(p))
	}
	if p.ID == "" {
		a.say("no letter is open that could be replayed")
		return nil
	}
	g := &grid{tail: true, head: []string{"KEY", "PRIORITY", "KIND", "ERROR"}}
	for _, l := range p.First {
		g.add(string(l.Key), string(l.Priority), daybook.Say("%s", l.Kind), daybook.Say("%s", a.stored(l.Error, zones[l.Job])))
	}
	if err := a.print(g); err != nil {
		return err
	}
	if more := p.Letters - len(p.First); more > 0 {
		a.say("and %d more", more)
	}
	for _, k := range slices.Sorted(maps.Keys(p.Subjects)) {
		a.say("%s: %s", k, daybook.Count(p.Subjects[k], "%d subject", "%d subjects"))
	}
	a.say("plan %s: %s would be replayed, each under the same key", p.ID, daybook.Count(p.Letters, "%d letter", "%d letters"))
	next := "daybook dead replay --plan " + p.ID
	if p.Job != "" {
		next += " --job " + p.Job
	}
	a.next(next)
	return nil
}

func (a *app) deadReplay(ctx context.Context, list []daybook.Key, note string, dry bool) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		some, err := a.showReplay(ctx, c, list, dry)
		if err != nil {
			return err
		}
		if dry {
			a.dryRun()
			return nil
		}
		if some {
			if err := a.proceed(daybook.Say("replay")); err != nil {
				return err
			}
		}
		answers, err := c.Replay(ctx, a.person(), list, note)
		exit := 0
		for i, answer := range answers {
			if len(answers) == 1 {
				return errors.Join(err, a.tell(answer, false))
			}
			exit = max(exit, answer.Exit)
			if terr := a.tellOne(answer); terr != nil {
				return terr
			}
			if i == len(answers)-1 && err == nil && exit != 0 {
				return &coded{code: exit, err: errors.New("told already"), silent: true}
			}
		}
		return err
	})
}

// showReplay shows what will be replayed, and reports whether anything will be.
func (a *app) showReplay(ctx context.Context, c *control.Control, list []daybook.Key, dry bool) (some bool, err error) {
	for _, k := range list {
		r, err := c.Run(ctx, k)
		if daybook.CodeOf(err) == daybook.CodeNotFound {
			if dry {
				return some, err
			}
			continue // the answer says so
		}
		if err != nil {
			return some, err
		}
		_, refused := r.Replay(a.person().Name, "", a.Now())
		if n := r.Subjects; r.FannedOut() && n != nil && n.UnderWay() == 0 && n.Letters > 0 {
			refused = nil
		}
		some = some || refused == nil
		switch {
		case dry && a.flags.json:
			j := actedJSON{Schema: "daybook/act.v1", Key: k, Act: "replay", From: r.State, To: r.State, Message: a.replayPlan(r).String(), DryRun: true, Run: control.Nested(r)}
			if refused == nil {
				j.To = daybook.Retryable
			}
			if err := a.printJSON(j); err != nil {
				return some, err
			}
		case dry:
			if err := a.line("%s  %s", k, a.replayPlan(r)); err != nil {
				return some, err
			}
		case refused == nil:
			plan := daybook.Say("replay %s: %s", k, a.replayPlan(r))
			if r.LastError != "" {
				plan = daybook.Say("%s (%s)", plan, a.stored(daybook.Clip(oneLine(r.LastError), 120), r.Zone))
			}
			a.plan("%s", plan)
		}
	}
	return some, nil
}

// tellOne says what became of one of several.
func (a *app) tellOne(answer control.Answer) error {
	if a.flags.json {
		return a.printJSON(control.NewAnswerJSON(answer))
	}
	if err := a.line("%s", a.shown(answer).Text()); err != nil {
		return err
	}
	a.nextText(answer.Do())
	return nil
}

// shellWord quotes a word for a shell where that is needed.
func shellWord(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r))
	}) < 0
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func newDeadDismiss(a *app) *cobra.Command {
	return a.actCommand("dismiss KEY --reason R", textDeadDismiss, textDeadDismissLong,
		act{name: "dismiss", do: (*control.Control).Dismiss, rule: (*daybook.Run).Dismiss, complete: a.completeLetters})
}
