package control

import (
	"cmp"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/notice"
)

func noReconcileText() daybook.Text { return daybook.Say("there is no reconcile job") }

func noJobsText() daybook.Text { return daybook.Say("no job is defined") }

func lettersText(n int) daybook.Text {
	return daybook.Count(n, "%d open dead letter", "%d open dead letters")
}

func silentText(v JobView, now time.Time) daybook.Text {
	if v.LastGood.Key == "" {
		return daybook.Say("has no good window since it is known")
	}
	return daybook.Say("has had no good window since %s (%s ago)", v.LastGood.Key, short(now.Sub(v.LastGood.EndedAt)))
}

func lateRunText(l LateRun, now time.Time) daybook.Text {
	late := short(now.Sub(l.Since))
	switch {
	case l.Run == nil:
		return daybook.Say("is late by %s: no scheduler has decided it", late)
	case l.Run.Hold != "":
		return daybook.Say("is late by %s: held, %s", late, l.Run.Hold)
	case l.Run.State == daybook.Running:
		return daybook.Say("is late by %s: attempt %d is running", late, l.Run.Attempts)
	case l.Run.State == daybook.Retryable && l.Run.LastError != "":
		return daybook.Say("is late by %s: %s", late, stored(daybook.Clip(oneLine(l.Run.LastError), 120), l.Run))
	}
	return daybook.Say("is late by %s: %s", late, l.Run.State)
}

func faultText(v JobView) daybook.Text {
	if v.known.fault != nil {
		return daybook.Say("cannot be planned: %s", v.known.fault)
	}
	return daybook.Say("cannot be planned: %s", oneLine(v.Fault))
}

func holdText(h daybook.Hold, r *Restored) daybook.Text {
	switch {
	case h.Name == daybook.HoldRestored && r != nil:
		return restoredText(r)
	case h.Name == daybook.HoldClock:
		return daybook.Say("held: the clock is not confirmed: %s", oneLine(h.Detail))
	}
	return daybook.Say("held: %s: %s", h.Name, oneLine(h.Detail))
}

// endHoldDo is how a hold is ended, with what comes before that.
func endHoldDo(h daybook.Hold, r *Restored) daybook.Text {
	if h.Name == daybook.HoldRestored && r != nil {
		return r.Do()
	}
	return command("daybook freeze end %s --reason …", h.Name)
}

func nobodyText(seen, now time.Time) daybook.Text {
	if seen.IsZero() {
		return daybook.Say("nobody executes: no serve was ever seen")
	}
	return daybook.Say("nobody executes: a serve was seen last %s ago", short(now.Sub(seen)))
}

func idleText(n daybook.Node, now time.Time) daybook.Text {
	if n.SeenAt.IsZero() {
		return daybook.Say("nobody executes the jobs of the application %s: it was never seen", n.Role)
	}
	return daybook.Say("nobody executes the jobs of the application %s: it was seen last %s ago", n.Role, short(now.Sub(n.SeenAt)))
}

// about puts in front of a phrase what it is about: a key, or a job.
func about[T ~string](subject T, text daybook.Text) daybook.Text {
	return daybook.Say("%s %s", string(subject), text)
}

// EffectsText says how it stands with the effects of a run with steps; zero: it has none.
func EffectsText(r *daybook.Run) daybook.Text {
	var said daybook.Texts
	for _, e := range r.Records {
		switch undo := r.Key.IsUndo(); {
		case e.Plain:
		case undo && e.State == daybook.EffectDone && e.Step == daybook.StepRun:
			said = append(said, daybook.Say("taken back"))
		case undo && e.State == daybook.EffectDone:
			said = append(said, daybook.Say("%s taken back", e.Step))
		case undo && (e.State == daybook.EffectUnknown || e.State == daybook.EffectBegun):
			said = append(said, daybook.Say("whether %s was taken back is unknown", e.Step))
		case undo:
			said = append(said, daybook.Say("%s not taken back", e.Step))
		case e.State == daybook.EffectDone:
			said = append(said, daybook.Say("%s done", e.Step))
		case e.State == daybook.EffectUnknown || e.State == daybook.EffectBegun:
			said = append(said, daybook.Say("%s unknown", e.Step))
		default:
			said = append(said, daybook.Say("%s not done", e.Step))
		}
	}
	if len(said) == 0 {
		return daybook.Text{}
	}
	return daybook.Say("%s", said)
}

// alertText says what an open alert is about.
func alertText(r notice.Row) daybook.Text {
	why := daybook.Stored(daybook.Clip(oneLine(cmp.Or(r.LastError, r.LastGood)), 300))
	switch r.Kind {
	case daybook.AlertDrillFailed:
		return daybook.Say("a drill failed: %s", why)
	case daybook.AlertDrillDue:
		return daybook.Say("a drill is due: %s", why)
	}
	return daybook.Say("alert %s: %s", r.Kind, why)
}

// alertDo is what ends an alert, or where to look.
func alertDo(r notice.Row) daybook.Text {
	switch {
	case r.Kind == daybook.AlertDrillFailed:
		return daybook.Say("daybook drill list; it ends with a drill that passes: daybook drill run %s --date …", r.Job)
	case r.Kind == daybook.AlertDrillDue:
		return command("daybook drill run %s --date …", r.Job)
	case r.Key != "":
		return command("daybook key show %s", r.Key)
	}
	return command("daybook job show %s", r.Job)
}
