package control

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/notice"
)

// maxStorySubjects bounds how many subjects the story of a run tells of.
const maxStorySubjects = 50

// fans reports whether the story is one of a run with subjects.
func (s *Story) fans() bool { return s.Run != nil && s.Run.Subjects != nil }

// tellSubjects adds to the story of a run what there is to tell of its subjects beside that they are done.
func (c *Control) tellSubjects(ctx context.Context, s *Story) (err error) {
	if !s.fans() {
		return nil
	}
	keys, err := c.s.Troubled(ctx, s.Key, maxStorySubjects+1)
	if err != nil {
		return err
	}
	if s.Untold = len(keys) > maxStorySubjects; s.Untold {
		keys = keys[:maxStorySubjects]
	}
	if len(keys) == 0 {
		return nil
	}
	alerts, err := c.s.AlertRows(ctx, false, maxListed)
	if err != nil {
		return err
	}
	shared := slices.DeleteFunc(alerts, func(r notice.Row) bool {
		return r.Key != s.Key || r.Kind != daybook.AlertDeadLetter && r.Kind != daybook.AlertUnknownOutcome
	})
	for _, k := range keys {
		child, err := c.Key(ctx, k)
		if err != nil {
			return err
		}
		if child.Run != nil {
			child.shared = shared
			s.troubled = append(s.troubled, child)
		}
	}
	return nil
}

// alertOf returns the id of the alert, open or closed, by which a letter of a subject was told; empty: none is known.
func (s *Story) alertOf(l daybook.Letter) string {
	for _, r := range s.shared {
		if !r.At.After(l.OpenedAt) && (r.ClosedAt.IsZero() || r.ClosedAt.After(l.OpenedAt)) {
			return r.ID()
		}
	}
	return ""
}

// subjectLines tells the story of one subject as lines of the story of its day: what was settled, what became a letter, who
// asked; of one without any of that, that it took more than one attempt.
func (s *Story) subjectLines(add func(Entry)) {
	told := false
	tell := func(at time.Time, what string, text, why daybook.Text) {
		if !at.IsZero() {
			told = true
			add(Entry{At: at, What: what, Text: daybook.Say("/%s  %s", s.Run.Subject, text), Why: why})
		}
	}
	replayed := false
	for _, t := range s.Triggers {
		why := daybook.Text{}
		if t.Source == daybook.SourceReplay && t.Outcome == daybook.Started {
			replayed = true
			why = s.renewed()
		}
		tell(t.At, "trigger", triggerText(t), why)
	}
	for _, e := range s.Run.Marked() {
		switch {
		case e.Plain || e.State != daybook.EffectDone:
		case e.SettledBy != "":
			tell(s.settledAt(e), "settled", doneText(e), s.settledText(e))
		case e.Generation > 1 && !replayed:
			tell(e.EndedAt, "settled", doneText(e), daybook.Say("wire key %s, after a definite no", e.WireKey()))
		}
	}
	for _, l := range s.Letters {
		what, why := s.letterTexts(l)
		tell(l.OpenedAt, "letter", what, why)
		if l.State == daybook.LetterDismissed || l.State == daybook.LetterCompensated {
			tell(l.ClosedAt, "letter", letterClosedText(l), daybook.Say("%s", oneLine(l.Note)))
		}
	}
	s.undoLines(tell)
	if told {
		return
	}
	for i := len(s.Attempts) - 1; i >= 0; i-- {
		if a := s.Attempts[i]; !a.Probe && a.Result != "" {
			tell(a.EndedAt, "attempt", attemptText(a, ""), s.earlier(a))
			return
		}
	}
}

// undoLines tell of the taking back of what the run of a subject did: who asked for it, where it waited, and what is back.
func (s *Story) undoLines(tell func(at time.Time, what string, text, why daybook.Text)) {
	d := s.Undoing
	if d == nil || d.Run.Key == s.Key {
		return
	}
	for _, a := range s.Acts {
		if a.Action == "undo" {
			tell(a.At, "act", actText(a), daybook.Say("%s", oneLine(a.Note)))
		}
	}
	for _, l := range d.Letters {
		tell(l.OpenedAt, "letter", daybook.Say("undo: %s", letterOpenedText(l, "")), daybook.Say("%s", stored(oneLine(l.Error), d.Run)))
		tell(l.ClosedAt, "letter", daybook.Say("undo: %s", letterClosedText(l)), daybook.Say("%s", oneLine(l.Note)))
	}
	if d.Run.State == daybook.Done {
		tell(d.Run.EndedAt, "act", daybook.Say("undo: done"), EffectsText(d.Run))
	}
}

// refusal tells how the subjects stood when a trigger was refused that met open letters of them, as far as is known.
func (s *Story) refusal(t daybook.Trigger) daybook.Text {
	if !s.fans() || s.Untold || t.Outcome != daybook.Refused || t.Note != "" {
		return daybook.Text{}
	}
	done, failed, unknown := s.Run.Subjects.States[daybook.Done], 0, 0
	for _, child := range s.troubled {
		if child.Run.State == daybook.Done && child.Run.EndedAt.After(t.At) {
			done--
		}
		for _, l := range child.Letters {
			switch {
			case l.OpenedAt.After(t.At) || !l.ClosedAt.IsZero() && !l.ClosedAt.After(t.At):
			case l.Kind == daybook.LetterUnknown:
				unknown++
			default:
				failed++
			}
		}
	}
	switch {
	case unknown > 0:
		return daybook.Say("%d done, %d unknown: settle it", done, unknown)
	case failed > 0:
		return daybook.Say("%d done, %s: replay it", done, daybook.Count(failed, "%d open letter", "%d open letters"))
	}
	return daybook.Text{}
}

// earlier tells how the attempts before one ended.
func (s *Story) earlier(last daybook.Attempt) daybook.Text {
	said := daybook.Text{}
	for _, a := range s.Attempts {
		switch {
		case a.Probe || a.Result == "" || a.Number >= last.Number:
		case said.IsZero():
			said = daybook.Say("attempt %d: %s", a.Number, ResultText(a.Result))
		default:
			said = daybook.Say("%s, attempt %d: %s", said, a.Number, ResultText(a.Result))
		}
	}
	return said
}

// letterTexts say what did not happen, or may have, and why it became a letter.
func (s *Story) letterTexts(l daybook.Letter) (what, why daybook.Text) {
	what, because := daybook.Say("dead"), l.Error
	for _, e := range s.Run.Marked() {
		if e.Plain {
			continue
		}
		unknown := l.Kind == daybook.LetterUnknown && (e.State == daybook.EffectUnknown || e.SettledBy != "")
		if failed := l.Kind == daybook.LetterFailed && (e.Generation > 1 || e.State != daybook.EffectDone); !failed && !unknown {
			continue
		}
		what = daybook.Say("%s not done", e.Step)
		if unknown {
			what = daybook.Say("%s unknown", e.Step)
		}
		because = strings.TrimPrefix(because, e.Named().String()+": ")
		break
	}
	if rest := doneBefore(s.Run, l.OpenedAt, what); !rest.IsZero() { // what money did is told with what did not
		what = daybook.Say("%s, %s", rest, what)
	}
	if id := s.alertOf(l); id != "" {
		return what, daybook.Say("%s → dead letter, alert %s", stored(oneLine(because), s.Run), id)
	}
	return what, daybook.Say("%s → dead letter", stored(oneLine(because), s.Run))
}

// doneBefore names the effects of r that were done by an instant, but for the one of which something else is said; zero: none was.
func doneBefore(r *daybook.Run, at time.Time, what daybook.Text) daybook.Text {
	var done daybook.Words
	for _, e := range r.Marked() {
		if !e.Plain && e.State == daybook.EffectDone && e.Step != daybook.StepRun && !e.EndedAt.After(at) && !strings.HasPrefix(what.String(), e.Step+" ") {
			done = append(done, e.Step)
		}
	}
	if len(done) == 0 {
		return daybook.Text{}
	}
	return daybook.Say("%s done", done)
}

// renewed tells under which new wire key an effect was done that a replay began anew; of none it says nothing.
func (s *Story) renewed() daybook.Text {
	for _, e := range s.Run.Marked() {
		if !e.Plain && e.Generation > 1 && e.State == daybook.EffectDone {
			if id := farID(e); id != "" {
				return daybook.Say("wire key %s → done %s", e.WireKey(), id)
			}
			return daybook.Say("wire key %s → done", e.WireKey())
		}
	}
	return daybook.Text{}
}

// doneText says that an effect is done, and what the far side calls it.
func doneText(e *daybook.StepRecord) daybook.Text {
	if id := farID(e); id != "" {
		return daybook.Say("%s done %s", e.Step, id)
	}
	return daybook.Say("%s done", e.Step)
}

// farID returns what the far side calls what was done, where its answer has an id.
func farID(e *daybook.StepRecord) string {
	var has struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(e.Data, &has) != nil || has.ID == "" {
		return ""
	}
	return daybook.Clip(oneLine(has.ID), 40)
}

// settledAt is when an effect whose end nobody had reported was settled.
func (s *Story) settledAt(e *daybook.StepRecord) time.Time {
	at := e.EndedAt
	for _, a := range s.Attempts {
		if a.Probe && strings.HasPrefix(a.WireKey, string(e.Key)+"#"+e.Step) && a.EndedAt.After(at) {
			at = a.EndedAt
		}
	}
	for _, act := range s.Acts {
		if strings.HasPrefix(act.Action, "resolve") && act.At.After(at) {
			at = act.At
		}
	}
	return at
}

// settledText tells why an effect was open, and who settled it.
func (s *Story) settledText(e *daybook.StepRecord) daybook.Text {
	zone := location(s.Zone)
	by := daybook.Say("settled by %s", oneLine(e.SettledBy))
	if e.SettledBy == "probe" {
		by = daybook.Say("probe: yes")
	}
	return daybook.Say("begun %s, %s, unknown %s, %s", clock(e.FirstAt, e.EndedAt, zone), s.ended(e), clock(e.EndedAt, s.settledAt(e), zone), by)
}

// ended tells how the last try of an effect ended.
func (s *Story) ended(e *daybook.StepRecord) daybook.Text {
	for _, a := range s.Attempts {
		if !a.Probe && a.Fence == e.Fence && a.Result == daybook.ResultLost {
			return daybook.Say("worker lost")
		}
	}
	return daybook.Say("nobody reported its end")
}
