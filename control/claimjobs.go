package control

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// defineFor works out what a claim says of its job. A job that a file or an application defines is not defined by it: what
// it says must be the same. One that nobody else defines is completed; without a word about it, it must be known.
func (c *Control) defineFor(ctx context.Context, p Person, q *ClaimRequest) error {
	if q.Job == "" {
		return daybook.Invalid("no job is named").WithHint("give the key, such as renew:2026-10-26, or the job with its window or date")
	}
	st, ok, err := c.s.JobState(ctx, q.Job)
	if err != nil {
		return err
	}
	ours := ok && st.Home == daybook.HomeOnce && st.RetiredAt.IsZero()
	file, filed := c.o.Defined(q.Job)
	switch {
	case ours && q.Define == nil:
		return windowFor(q, c.read(st), c.now())
	case ok && !ours && st.RetiredAt.IsZero():
		k := c.read(st)
		return sameJob(q, k.job)
	case filed:
		return sameJob(q, file)
	case q.Define == nil:
		q.Define = &daybook.Job{}
	}
	j := *q.Define
	j.Name, j.Owner = q.Job, p.Name
	if was := c.read(st).job; ours && was != nil { // whoever claims it next does not make it his own
		j.Owner, j.Timezone = was.Owner, cmp.Or(j.Timezone, was.Timezone)
	}
	if j.Timezone == "" {
		return daybook.Invalid("job %s is defined nowhere, and nothing says its time zone", quoted(q.Job, daybook.MaxNameBytes)).
			WithHint("add its time zone, such as Europe/Berlin: nothing falls back to the zone of this machine")
	}
	if j.Window == "" && j.Schedule == "" {
		if j.Window, err = kindOf(q); err != nil {
			return err
		}
	}
	if j.Window == daybook.PerEvent {
		j.Work = daybook.Event
	}
	whole, schedule, err := calendar.Complete(j, nil)
	if err != nil {
		return err
	}
	if j.Window == "" { // the kind that the schedule implies: it is the meaning of the key
		j.Window = schedule.Window()
		whole.Window = j.Window
	}
	for _, fault := range whole.Check() {
		return fault.Err
	}
	q.Define = &j
	return windowFor(q, known{job: &whole, schedule: schedule}, c.now())
}

// windowFor names the window of a claim where its job is defined by claims: by a date whatever the kind, and without a
// schedule that of the wall date.
func windowFor(q *ClaimRequest, k known, now time.Time) error {
	switch {
	case k.schedule == nil || q.Window != "":
	case q.Date != "":
		w, err := k.schedule.OfDate(q.Date)
		if err != nil {
			return err
		}
		q.Date, q.Window = "", w.Label
	case k.job.Schedule == "" && k.kind() != daybook.PerEvent:
		q.Window = k.schedule.Current(now).Label
	}
	return nil
}

// kindOf tells the kind of window by the label that is asked for.
func kindOf(q *ClaimRequest) (daybook.WindowKind, error) {
	if q.Date != "" {
		return daybook.Day, nil
	}
	if q.Window == "" {
		return "", daybook.Invalid("nothing says which window of job %s is meant", quoted(q.Job, daybook.MaxNameBytes)).
			WithHint("give its label, a date, a schedule, or the kind of window that holds today")
	}
	label := q.Window
	for i := range label {
		if label[i] == '~' {
			label = label[:i]
			break
		}
	}
	if kind, ok := calendar.KindOf(label); ok {
		return kind, nil
	}
	return "", daybook.Invalid("window %q is not the label of a day, week, month, quarter, year or time", daybook.Clip(q.Window, 60)).
		WithHint(`write a day as 2026-10-26, or add "kind": "event" when the label is the id of an event`)
}

// sameJob refuses what a claim says otherwise than the definition of its job: schedule, window and policies are not the
// claim's.
func sameJob(q *ClaimRequest, j *daybook.Job) error {
	given := q.Define
	q.Define = nil
	if given == nil || j == nil {
		return nil
	}
	differ := func(name, got, want string) error {
		return daybook.Invalid("job %s is defined elsewhere: %s %q is not its %q", j.Name, name, got, want).WithHint("leave %s out", name)
	}
	for _, f := range []struct{ name, got, want string }{
		{"schedule", given.Schedule, j.Schedule}, {"kind", string(given.Window), string(j.Window)}, {"timezone", given.Timezone, j.Timezone},
		{"effects", string(given.Effects), string(j.Effects)}, {"priority", string(given.Priority), string(j.Priority)}, {"overlap", string(given.Overlap), string(j.Overlap)},
	} {
		if f.name == "overlap" && q.File {
			continue
		}
		if f.got != "" && f.got != f.want {
			return differ(f.name, f.got, f.want)
		}
	}
	switch {
	case given.Steps != j.Steps && (given.Steps || q.File):
		return differ("steps", strconv.FormatBool(given.Steps), strconv.FormatBool(j.Steps))
	case q.File:
	case given.Remembers != 0 && given.Remembers != j.Remembers:
		return differ("remembers", given.Remembers.String(), j.Remembers.String())
	case given.Timeout != 0 && given.Timeout != j.Timeout:
		return differ("timeout", given.Timeout.String(), j.Timeout.String())
	case given.Retry.Backoff != nil:
		return daybook.Invalid("job %s is defined elsewhere: its ladder is not the claim's", j.Name).WithHint("leave %s out", "backoff")
	case !given.Probe.IsZero():
		return daybook.Invalid("job %s is defined elsewhere: its probe is not the claim's", j.Name).WithHint("leave %s out", "probe")
	}
	return nil
}
