package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

func newStatus(a *app) *cobra.Command {
	var job string
	cmd := &cobra.Command{
		Use: "status", Short: textStatus, Long: textStatusLong, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context(), job) },
	}
	cmd.Flags().StringVar(&job, "job", "", "of one job only")
	return cmd
}

func (a *app) status(ctx context.Context, job string) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		var only []string
		if job != "" {
			only = []string{job}
		}
		s, err := c.Status(ctx, only...)
		if err != nil {
			return err
		}
		if a.flags.json {
			err = a.printJSON(control.NewStatusJSON(s))
		} else {
			w := bufio.NewWriter(a.Stdout)
			a.tellStatus(w, s)
			err = w.Flush()
		}
		if err != nil {
			return err
		}
		if len(s.Jobs) == 0 {
			a.say("  → daybook init writes a first daybook.yaml, daybook serve makes its jobs known")
		}
		if exit := s.Exit(); exit != 0 {
			return &coded{code: exit, err: errors.New("told already"), silent: true}
		}
		return nil
	})
}

var verdictGlyph = map[control.Verdict]string{control.VerdictYes: "✓", control.VerdictNo: "✕", control.VerdictNotKnown: "?"}

// tellStatus writes the five blocks: both verdicts, what needs a person, today's page, what comes next.
func (a *app) tellStatus(w *bufio.Writer, s control.Status) {
	ran, done := daybook.Say("%s", daybook.Texts(s.Ran.Because)), daybook.Say("%d of %d done", s.Done, s.Of)
	switch yes := s.Ran.Verdict == control.VerdictYes; {
	case yes && s.OnceOnly():
		ran = daybook.Say("what was started is done; whether each line was started is for cron to say")
	case yes && s.Of == 0:
		ran = daybook.Say("nothing was due yet")
	case yes:
		ran = done
	case s.Of > 0:
		ran = daybook.Say("%s · %s", ran, done)
	}
	a.verdict(w, daybook.Say("RAN"), s.Ran.Verdict, ran)
	a.verdict(w, daybook.Say("MONEY"), s.Money.Verdict, daybook.Say("%s", daybook.Texts(s.Money.Because)))
	fmt.Fprintf(w, "       %s\n", a.evidence(s))
	if len(s.NeedsYou) > 0 {
		fmt.Fprintf(w, "\n%s\n", a.lang.F("NEEDS YOU (%d)", len(s.NeedsYou)))
		for _, n := range s.NeedsYou {
			a.need(w, n, s.At)
		}
	}
	a.today(w, s)
	if len(s.Next) > 0 {
		fmt.Fprintf(w, "\n%s\n", a.lang.F("NEXT 24 H"))
		for _, n := range s.Next {
			zone := time.UTC
			for _, v := range s.Jobs {
				if v.Name == n.Job && v.Job != nil {
					zone = a.zoneOf(v.Job.Timezone)
				}
			}
			fmt.Fprintf(w, "  %s  %s → %s\n", n.Fire.At.In(zone).Format("2006-01-02 15:04")+" "+zone.String(), n.Job, n.Key)
		}
	}
}

func (a *app) verdict(w *bufio.Writer, name daybook.Text, v control.Verdict, text daybook.Text) {
	word, longest := a.lang.Verdict(string(v)), a.lang.Verdict(string(control.VerdictNotKnown))
	head := fmt.Sprintf("%s %s %s", pad(a.lang.Say(name), 6), verdictGlyph[v], pad(word, displayWidth(longest)))
	indent := displayWidth(head) + 2
	for i, line := range wrap(oneLine(a.lang.Say(text)), a.columns()-indent) {
		if i == 0 {
			fmt.Fprintf(w, "%s  %s\n", strings.Replace(head, verdictGlyph[v], a.mark(verdictGlyph[v]), 1), line)
			continue
		}
		fmt.Fprintf(w, "%s%s\n", strings.Repeat(" ", indent), line)
	}
}

// evidence says how old what was said is.
func (a *app) evidence(s control.Status) string {
	text := daybook.Say("no serve was ever seen")
	switch {
	case len(s.Serves) == 0 && s.OnceOnly():
		text = daybook.Say("only daybook once works on this ledger")
	case len(s.Serves) > 0:
		text = daybook.Count(len(s.Serves), "%d serve alive, seen %s ago", "%d serves alive, seen %s ago", short(max(s.At.Sub(s.SeenAt), 0)))
	case !s.SeenAt.IsZero():
		text = daybook.Say("no serve alive, seen %s ago", short(s.At.Sub(s.SeenAt)))
	}
	for _, state := range []daybook.State{daybook.Running, daybook.Retryable, daybook.Scheduled} {
		if n := s.Counts.Live[state]; n > 0 {
			text = daybook.Say("%s · %d %s", text, n, state)
		}
	}
	for _, f := range s.Freezes {
		text = daybook.Say("%s · freeze %s until %s", text, f.Name, stamp(f.Until, a.zoneOf("")))
	}
	if s.Frozen > 0 {
		text = daybook.Say("%s · %d frozen", text, s.Frozen)
	}
	return a.lang.Say(text)
}

func (a *app) need(w *bufio.Writer, n control.Need, now time.Time) {
	what := cmp.Or(string(n.Key), n.Job)
	if what != "" {
		what += "  "
	}
	text := n.Text
	switch {
	case n.WireKey != "" && n.WireKey != string(n.Key):
		text = daybook.Say("whether %s happened is unknown: %s", n.WireKey, text)
	case n.Kind == "unknown outcome":
		text = daybook.Say("whether it happened is unknown: %s", text)
	}
	line := fmt.Sprintf("%s %s%s", n.Priority, what, oneLine(a.lang.Say(text)))
	for i, l := range wrap(line, a.columns()-4) {
		if i == 0 {
			fmt.Fprintf(w, "  %s %s\n", a.mark("✕"), l)
		} else {
			fmt.Fprintf(w, "    %s\n", l)
		}
	}
	if r := n.Run; r != nil && !n.Since.IsZero() {
		text := daybook.Say("since %s, %s", stamp(n.Since, a.zoneOf(r.Zone)), daybook.Count(r.Attempts, "%d attempt", "%d attempts"))
		if n.Alert != "" {
			text = daybook.Say("%s, alert %s", text, n.Alert)
		}
		if effects := control.EffectsText(r); !effects.IsZero() {
			text = daybook.Say("%s · %s", text, effects)
		}
		fmt.Fprintf(w, "      %s\n", a.lang.Say(text))
	}
	fmt.Fprintf(w, "      → %s\n", oneLine(a.lang.Say(n.Do))) // in one line, as it is copied
}

// today writes, for each job, how its newest window stands: every knock at the door, and what it led to.
func (a *app) today(w *bufio.Writer, s control.Status) {
	if len(s.Jobs) == 0 {
		return
	}
	names, states, keys, times := 0, 0, 0, 0
	for _, v := range s.Jobs {
		names, states = max(names, displayWidth(v.Name)), max(states, displayWidth(a.todayState(v)))
		if v.Last != nil {
			keys, times = max(keys, len(v.Last.Key)), max(times, displayWidth(a.lang.Say(took(v.Last))))
		}
	}
	fmt.Fprintf(w, "\n%s\n", a.lang.F("TODAY'S PAGE"))
	for _, v := range s.Jobs {
		priority := daybook.Priority("  ")
		if v.Job != nil {
			priority = v.Job.Priority
		}
		line := fmt.Sprintf("  %s %s  %s", priority, pad(v.Name, names), pad(a.todayState(v), states))
		if r := v.Last; r != nil {
			line += "  " + pad(string(r.Key), keys)
			if times > 0 {
				text := a.lang.Say(took(r))
				line += strings.Repeat(" ", 2+times-displayWidth(text)) + text
			}
			line += "  " + a.lang.Say(figures(r))
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

func (a *app) todayState(v control.JobView) string {
	switch v.Standing() {
	case "fault":
		return a.lang.F("! fault")
	case "paused":
		return a.lang.F("‖ paused")
	case "never ran":
		return a.lang.F("∅ never ran")
	default:
		return a.lang.F("%s %s", glyphs[v.Last.State], v.Last.State)
	}
}

// figures are the signature of a run: triggers 3 → ran 1 → charges 20.
func figures(r *daybook.Run) daybook.Text {
	text := daybook.Say("triggers %d → ran %d", r.Triggers, r.Attempts)
	for _, name := range sortedNames(r.Counts) {
		text = daybook.Say("%s → %s %d", text, oneLine(name), r.Counts[name])
	}
	if n := r.Subjects; n != nil {
		text = daybook.Say("%s → subjects %d of %d", text, n.States[daybook.Done], n.Of)
	}
	return text
}

// took is how long the attempt took that ended a run, or nothing.
func took(r *daybook.Run) daybook.Text {
	began := control.StartedAt(r)
	if began.IsZero() || r.EndedAt.IsZero() || r.EndedAt.Before(began) {
		return daybook.Text{}
	}
	return short(r.EndedAt.Sub(began))
}
