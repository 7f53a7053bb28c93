package alert

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/lang"
)

// What an alert says of money, and what a person does about it, both by what is recorded of the effects of the run.

// namedEffects is how many effects, and subjects, a line about money names; the others are counted.
const namedEffects = 5

func (w *writer) shortly() string {
	if w.a.Priority != daybook.P0 {
		return "p1"
	}
	return w.world()
}

// world names what has been done to the world, as far as is recorded.
func (w *writer) world() string {
	r := w.f.Run
	switch {
	case w.a.Kind == daybook.AlertDoneTwice && w.twiceOpen():
		return "twice_open"
	case w.a.Kind == daybook.AlertDoneTwice:
		return "twice"
	case w.a.Kind == daybook.AlertLedgerRestored, r != nil && r.Effect != nil && r.Effect.Forgotten():
		return "forgot"
	case w.a.Alert.Key == "":
		return "no_key"
	case r != nil && r.Key.IsUndo():
		return w.undone()
	case r == nil || r.Attempts == 0 && len(r.Records) == 0:
		return "no_run"
	case r.Fans:
		return "subjects"
	}
	world := of(r)
	if world == "done" && slices.ContainsFunc(r.Undoable(), func(e *daybook.StepRecord) bool { return e.Twice != "" }) {
		return "twice"
	}
	return world
}

// twiceOpen reports whether it is not known yet if what happened under one wire key happened under a later one, too.
func (w *writer) twiceOpen() bool {
	return w.f.Run != nil && slices.ContainsFunc(w.f.Run.Marked(), func(e *daybook.StepRecord) bool {
		return e.Twice != "" && (e.State == daybook.EffectBegun || e.State == daybook.EffectUnknown)
	})
}

// of is the world of one run that is tried.
func of(r *daybook.Run) string {
	open := r.OpenSteps()
	switch {
	case r.Effects != daybook.Once && !r.Steps:
		return "repeatable"
	case r.Effect != nil && (r.Effect.State == daybook.EffectUnknown || r.Effect.Open):
		return "unknown"
	case r.Effect != nil && r.Effect.State == daybook.EffectBegun:
		return "begun"
	case slices.ContainsFunc(open, func(e *daybook.StepRecord) bool { return e.State == daybook.EffectUnknown }), len(open) > 0 && r.State != daybook.Running:
		return "unknown"
	case len(open) > 0:
		return "begun"
	case len(r.Undoable()) > 0:
		return "done"
	}
	return "not_done"
}

// undone is the world of a run that takes back what another did.
func (w *writer) undone() string {
	switch r := w.f.Run; {
	case len(r.OpenSteps()) > 0:
		return "undo_unknown"
	case len(w.left()) > 0 || w.f.Base == nil && r.State != daybook.Done:
		return "undo_left"
	}
	return "undo_done"
}

// left are the wire keys of what an undo has not taken back. Of what was done twice it takes back one only.
func (w *writer) left() (wireKeys []string) {
	if w.f.Base == nil {
		return nil
	}
	for _, e := range w.f.Base.Undoable() {
		if back := w.f.Run.StepRecord(e.Step); back == nil || back.State != daybook.EffectDone {
			wireKeys = append(wireKeys, e.WireKey())
		}
		if e.Twice != "" {
			wireKeys = append(wireKeys, e.Twice)
		}
	}
	return wireKeys
}

// about are the effects of which the world that is named holds: those that are unknown, done, or done twice.
func (w *writer) about(world string) []*daybook.StepRecord {
	r := w.f.Run
	switch {
	case r == nil:
		return nil
	case world == "twice":
		return slices.DeleteFunc(r.Undoable(), func(e *daybook.StepRecord) bool { return e.Twice == "" })
	case r.Steps && (world == "unknown" || world == "begun" || world == "undo_unknown"):
		return r.OpenSteps()
	case r.Steps && world == "done":
		list := r.Undoable()
		slices.Reverse(list)
		return list
	}
	return nil
}

// wireKeys are those of some effects; without any, that of the whole attempt as it stands.
func (w *writer) wireKeys(list []*daybook.StepRecord) string {
	if len(list) == 0 {
		if w.f.Run == nil {
			return ""
		}
		return w.f.Run.WireKey()
	}
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.WireKey()
	}
	return w.some(names)
}

// bothKeys names all wire keys under which the far side has what was done twice.
func (w *writer) bothKeys(list []*daybook.StepRecord) string {
	var names []string
	for _, e := range list {
		names = append(names, e.Twice, e.WireKey())
	}
	return w.some(names)
}

// notBack names what an undo has not taken back; without any, the undo as a whole.
func (w *writer) notBack() string {
	if left := w.left(); len(left) > 0 {
		return w.some(left)
	}
	return w.wireKeys(nil)
}

// some names the first ones of a list, and counts the others.
func (w *writer) some(names []string) string {
	more := len(names) - namedEffects
	if more <= 0 {
		return strings.Join(names, w.T("sep.list"))
	}
	return w.T("alert.subjects more", "subjects", strings.Join(names[:namedEffects], w.T("sep.list")), "more", more)
}

// money says whether money is touched, then what has been done to the world. For a job that does not touch money the
// effect is told all the same.
func (w *writer) money() string {
	world := w.world()
	about := w.about(world)
	args := []any{"wire_key", w.wireKeys(about)}
	switch {
	case world == "undo_left":
		args[1] = w.notBack()
	case world == "twice" && len(about) > 0:
		world, args[1] = "twice named", w.bothKeys(about)
	}
	if world == "unknown" || world == "undo_unknown" {
		how, code := w.howOpen(about)
		if w.a.Priority == daybook.P0 || how == " forgot" {
			world += how
		}
		args = append(args, "code", code)
	}
	if len(about) > 1 && world != "twice named" {
		world += " each"
	}
	var parts []string
	if w.a.Priority == daybook.P0 {
		parts = append(parts, w.T("alert.money."+world, args...))
	} else {
		parts = append(parts, w.T("alert.money.p1"), w.T("alert.effect."+world, args...))
	}
	parts = append(parts, w.others(about)...)
	if world == "subjects" {
		parts = append(parts, w.ofSubjects())
	}
	if r := w.f.Run; r != nil && len(r.Counts) > 0 {
		var counts []string
		for name, n := range r.Counts {
			counts = append(counts, fmt.Sprintf("%d %s", n, w.clean(name)))
		}
		slices.Sort(counts)
		parts = append(parts, w.T("alert.reported", "counts", lang.CutChars(strings.Join(counts, w.T("sep.list")), lineChars)))
	}
	if n := w.f.Counts; n != nil {
		parts = append(parts, w.T("alert.run", "done", n.States[daybook.Done], "of", n.Of, "letters", n.Letters, "unknown", n.Unknown))
	}
	return w.join("sep.clause", parts...)
}

// exitText is how a command ended by its code; behind it stands what it printed.
var exitText = regexp.MustCompile(`^exit \d+\b`)

// unreportedText is what Daybook's own sentences say of an end that nobody reported.
var unreportedText = regexp.MustCompile(`nobody reported|left no report`)

// howOpen says how it came that an outcome is unknown, as the end of the name of a text: nobody reported it (none), it ended with a
// code that leaves it open, the ledger forgot it, or another way, which the error tells.
func (w *writer) howOpen(about []*daybook.StepRecord) (how, code string) {
	if len(about) == 0 {
		return howOpen(w.a.LastError)
	}
	for i, e := range about {
		one, c := howOpen(e.Error)
		if e.Forgotten() {
			one = " forgot"
		}
		switch {
		case i == 0:
			how, code = one, c
		case one != how:
			how = " open"
		}
	}
	if how == " unclear" && len(about) > 1 {
		how = " open"
	}
	return how, code
}

func howOpen(err string) (how, code string) {
	code = exitText.FindString(err)
	switch {
	case code != "":
		return " unclear", code
	case err == "" || unreportedText.MatchString(err):
		return "", ""
	}
	return " open", ""
}

// others tells of the effects of a run with steps that are not told of yet: which are done, and which are not.
func (w *writer) others(told []*daybook.StepRecord) []string {
	r := w.f.Run
	if r == nil || !r.Steps || r.Fans {
		return nil
	}
	var done, not []string
	for _, e := range r.Records {
		switch {
		case e.Plain || slices.Contains(told, e):
		case e.State == daybook.EffectDone:
			done = append(done, w.clean(e.Step))
		case e.State == daybook.EffectNotDone, e.State == daybook.EffectRefused:
			not = append(not, w.clean(e.Step))
		}
	}
	name := "alert.steps."
	if r.Key.IsUndo() {
		name, not = "alert.steps.undo ", nil // what was not taken back is told
	}
	var parts []string
	if len(done) > 0 {
		parts = append(parts, w.T(name+"done", "steps", w.some(done)))
	}
	if len(not) > 0 {
		parts = append(parts, w.T(name+"not done", "steps", w.some(not)))
	}
	return parts
}

// ofSubjects tells how it stands with the subjects that are listed, by what is recorded of the effects of each.
func (w *writer) ofSubjects() string {
	names := map[string][]string{}
	for _, r := range w.f.Runs {
		world := of(r)
		if world == "begun" {
			world = "unknown"
		}
		names[world] = append(names[world], w.clean(r.Subject))
	}
	var parts []string
	for _, world := range []string{"unknown", "done", "not_done"} {
		if list := names[world]; len(list) > 0 {
			parts = append(parts, w.T("alert.of subjects."+world, "count", len(list), "subjects", w.some(list)))
		}
	}
	return w.join("sep.clause", parts...)
}

// do is what to do, the likeliest first.
func (w *writer) do() []string {
	args := []any{"key", w.what, "job", w.clean(w.a.Job), "id", w.a.ID(), "step", w.f.Run.OpenStep(), "wire_key", "", "attempt", ""}
	if r := w.f.Run; r != nil {
		args[len(args)-3] = r.OpenWireKey()
		if r.Attempts > 1 { // "not done" is said of one of them
			args[len(args)-1] = " --attempt " + strconv.Itoa(r.Attempts)
		}
	}
	switch {
	case w.skipped():
		return []string{w.T("alert.do.skipped", append(args, "window", w.a.Alert.Key.Parts().Window)...)}
	case w.a.Kind == daybook.AlertDeadLetter:
		return w.doLetter(args)
	case w.a.Kind == daybook.AlertUnknownOutcome && len(w.f.Subjects) > 1:
		return []string{w.T("alert.do.subjects unknown", append(args, "subject", string(w.f.Subjects[0]))...)}
	case w.a.Kind == daybook.AlertUnknownOutcome && w.f.Run != nil && w.f.Run.Key.IsUndo():
		return []string{w.T("alert.do.resolve undo", args...), w.T("alert.do.resolve not done", args...)}
	case w.a.Kind == daybook.AlertUnknownOutcome:
		return []string{w.T("alert.do.resolve", args...), w.T("alert.do.resolve not done", args...)}
	}
	name := "alert.do." + string(w.a.Kind)
	if w.world() == "twice_open" {
		name += " open"
	}
	if w.Has(name) {
		return []string{w.T(name, args...)}
	}
	return []string{w.T("alert.do.other", args...)}
}

// doLetter is what to do about a run that failed. An undo goes on, or what it cannot take back is taken back by hand; nothing
// else is replayed of it.
func (w *writer) doLetter(args []any) []string {
	r := w.f.Run
	left := append(args, "left", w.notBack())
	switch next := w.nextWireKey(); {
	case r != nil && r.Key.IsUndo() && r.Letter != nil && r.Letter.ByHand():
		return []string{w.T("alert.do.undo by hand", left...), w.T("alert.do.undo say how", args...)}
	case r != nil && r.Key.IsUndo():
		return []string{w.T("alert.do.undo", args...), w.T("alert.do.undo by hand or", left...)}
	case next != "":
		return []string{w.T("alert.do.replay wire", append(args, "next", next)...), w.instead(args)}
	case r != nil && r.Steps && len(r.Undoable()) > 0:
		return []string{w.T("alert.do.replay rest", args...), w.instead(args)}
	}
	return []string{w.T("alert.do.replay", args...), w.instead(args)}
}

// instead is what can be done instead of a replay: what is done is taken back, where the job says how; else the letter is closed.
func (w *writer) instead(args []any) string {
	if r := w.f.Run; r != nil && !r.Fans && w.f.Job != nil && slices.ContainsFunc(r.Undoable(), w.f.Job.CanUndo) {
		return w.T("alert.do.dead undo", args...)
	}
	return w.T("alert.do.dismiss", args...)
}

// nextWireKey is the one under which a replay begins what did not happen; empty: it is not one effect that a replay begins.
func (w *writer) nextWireKey() string {
	r := w.f.Run
	if r == nil || r.Fans || r.Key.IsUndo() {
		return ""
	}
	for _, e := range r.Marked() {
		if !e.Plain && e.State == daybook.EffectRefused {
			return e.Key.WireKey(e.Step, e.Generation+1)
		}
	}
	if r.OneEffect() {
		return r.WireKey()
	}
	return ""
}
