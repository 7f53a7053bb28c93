package main

import (
	"bufio"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

func newSchedule(a *app) *cobra.Command {
	return noun("schedule", textSchedule, newScheduleFires(a))
}

// firesOptions is what schedule fires was asked.
type firesOptions struct {
	schedule, zone, from, to, window string
}

func newScheduleFires(a *app) *cobra.Command {
	var o firesOptions
	cmd := &cobra.Command{
		Use:     `fires "SCHEDULE" --zone Z --from T --to T [--window KIND]`,
		Short:   textFires,
		Long:    textFiresLong,
		Example: textFiresExample,
		Args:    exactly(`"SCHEDULE"`),
		RunE: func(_ *cobra.Command, args []string) error {
			o.schedule = args[0]
			s, from, to, err := o.parse()
			if err != nil {
				return err
			}
			return a.fires(s, from, to)
		},
		DisableFlagsInUseLine: true,
	}
	f := cmd.Flags()
	f.StringVar(&o.zone, "zone", "", textFlagZone)
	f.StringVar(&o.from, "from", "", textFlagFrom)
	f.StringVar(&o.to, "to", "", textFlagTo)
	f.StringVar(&o.window, "window", "", textFlagWindow)
	_ = cmd.RegisterFlagCompletionFunc("window", value(texts(daybook.WindowKinds)...)) // the flag is there
	return cmd
}

// parse checks what was asked.
func (o firesOptions) parse() (s *calendar.Schedule, from, to time.Time, err error) {
	if o.schedule == "" {
		return nil, from, to, daybook.Invalid("the schedule is empty").WithHint(`write a form such as "daily 02:00" or "0 2 * * *"`)
	}
	if o.zone == "" {
		return nil, from, to, daybook.Invalid("--zone is missing").WithHint("name an IANA zone, such as --zone Europe/Berlin: nothing falls back to the machine's zone")
	}
	if from, err = instantFlag("--from", o.from); err != nil {
		return nil, from, to, err
	}
	if to, err = instantFlag("--to", o.to); err != nil {
		return nil, from, to, err
	}
	if to.Before(from) {
		return nil, from, to, daybook.Invalid("--to %s is before --from %s", o.to, o.from).WithHint("the span is (from, to]")
	}
	s, err = calendar.Compile(calendar.Spec{Schedule: o.schedule, Zone: o.zone, Window: daybook.WindowKind(o.window)})
	return s, from, to, err
}

// instantFlag reads an instant with its offset from UTC.
func instantFlag(flag, text string) (time.Time, error) {
	const hint = "write an instant with its offset, such as 2026-03-29T00:00:00Z or 2026-03-29T02:00:00+02:00"
	if text == "" {
		return time.Time{}, daybook.Invalid("%s is missing", flag).WithHint(hint)
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, daybook.Invalid("%s: %q is no instant", flag, daybook.Clip(text, 40)).WithHint(hint)
	}
	return t, nil
}

// fireJSON is one line of schedule fires --json.
type fireJSON struct {
	Fire   string `json:"fire"`
	Local  string `json:"local"`
	Window string `json:"window"`
	Note   string `json:"note,omitempty"`
}

func newFireJSON(f daybook.Fire, loc *time.Location) fireJSON {
	return fireJSON{f.At.UTC().Format(time.RFC3339), f.At.In(loc).Format(time.RFC3339), f.Window.Label, string(f.Note)}
}

// firesHead is the head of a listing whose columns are counted in signs, not in columns of a terminal: it stays English.
const firesHead = "FIRE\tLOCAL\tWINDOW\tNOTE"

// fires writes the fires in (from, to], each with the window it answers for.
func (a *app) fires(s *calendar.Schedule, from, to time.Time) (err error) {
	w := bufio.NewWriter(a.Stdout)
	defer func() {
		if e := w.Flush(); err == nil {
			err = e
		}
	}()
	n := 0
	if a.flags.json {
		for f := range s.Between(from, to) {
			if f.Skip != "" {
				continue
			}
			if err := writeJSON(w, newFireJSON(f, s.Location())); err != nil {
				return err
			}
		}
		return nil
	}
	shown := a.displayZone(s.Location())
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for f := range s.Between(from, to) {
		if f.Skip != "" {
			continue
		}
		if n == 0 {
			fmt.Fprintln(table, firesHead)
		}
		n++
		j := newFireJSON(f, shown)
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", j.Fire, j.Local, j.Window, j.Note); err != nil {
			return err
		}
		if n%1000 == 0 { // a long listing is not kept in memory for its columns
			if err := table.Flush(); err != nil {
				return err
			}
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	a.say("%s: %s", daybook.Count(n, "%d fire", "%d fires"), s.Words())
	for _, remark := range s.Remarks() {
		a.say("note: %s", remark)
	}
	return nil
}
