package alert

import (
	"strings"
	"testing"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/golden"
	"github.com/daybook-run/daybook/internal/lang"
	"github.com/daybook-run/daybook/internal/notice"
)

// TestMoneyOfSteps: an alert about a run with steps says which effects happened, which is unknown, under which wire key to look
// for it, and gives the command for that very step; one about an undo says what is not taken back.
func TestMoneyOfSteps(t *testing.T) {
	const key, undo = daybook.Key("renew:2026-03-29/sub_07"), daybook.Key("renew:2026-03-29/sub_07~undo")
	step := func(k daybook.Key, name string, s daybook.EffectState) *daybook.StepRecord {
		return &daybook.StepRecord{Key: k, Step: name, State: s, Generation: 1, Tries: 1}
	}
	steps := func(list ...*daybook.StepRecord) func(*notice.Row, *Facts) {
		return func(r *notice.Row, f *Facts) {
			r.Alert.Key, f.Run.Key, f.Run.Subject, f.Run.Steps, f.Run.Effect, f.Run.Records = key, key, "sub_07", true, nil, list
		}
	}
	taken := func(letter daybook.Letter, list ...*daybook.StepRecord) func(*notice.Row, *Facts) {
		return func(r *notice.Row, f *Facts) {
			steps(list...)(r, f)
			r.Alert.Key, f.Run.Key, f.Run.Letter = undo, undo, &letter
			r.LastError = letter.Error
			f.Base = &daybook.Run{Key: key, State: daybook.Done, Steps: true, Records: []*daybook.StepRecord{step(key, "charge", daybook.EffectDone), step(key, "receipt", daybook.EffectDone)}}
		}
	}
	because := func(e *daybook.StepRecord, err string) *daybook.StepRecord {
		e.Error = err
		return e
	}
	forgot := because(step(key, "charge", daybook.EffectUnknown), "the ledger was put back to 2026-03-29T00:30:00Z and forgot what happened after it: whether this happened is unknown")
	forgot.Doubt = 1
	plain := step(key, "look", daybook.EffectDone)
	plain.Plain = true
	for _, c := range []struct {
		name   string
		kind   daybook.AlertKind
		change func(*notice.Row, *Facts)
		want   []string
		not    string
	}{
		{"charged, the next unknown", daybook.AlertUnknownOutcome, steps(plain, step(key, "charge", daybook.EffectDone), step(key, "extend", daybook.EffectUnknown)),
			[]string{"Money:     not known: renew:2026-03-29/sub_07#extend was begun and nobody reported how it ended", "; done: charge\n",
				"look at the far side for renew:2026-03-29/sub_07#extend. It happened:   daybook run resolve renew:2026-03-29/sub_07 --step extend --as done"}, "Steps tell"},
		{"tried twice", daybook.AlertUnknownOutcome, func(r *notice.Row, f *Facts) {
			steps(step(key, "charge", daybook.EffectUnknown))(r, f)
			f.Run.Attempts = 2
		}, []string{"daybook run resolve renew:2026-03-29/sub_07 --step charge --as not-done --attempt 2 --reason"}, "--as done --attempt"},
		{"ended unclear", daybook.AlertUnknownOutcome, steps(because(step(key, "charge", daybook.EffectUnknown), "exit 1: 502 from the far side")),
			[]string{"Money:     not known: renew:2026-03-29/sub_07#charge was begun and ended unclear (exit 1): whether it happened is unknown. Nothing is repeated"}, "nobody reported"},
		{"the far side cannot tell", daybook.AlertUnknownOutcome, steps(because(step(key, "charge", daybook.EffectUnknown), "the probe cannot tell about it")),
			[]string{"Money:     not known: renew:2026-03-29/sub_07#charge was begun, and whether it happened is unknown. Nothing is repeated"}, "nobody reported"},
		{"the ledger forgot a step", daybook.AlertUnknownOutcome, steps(forgot),
			[]string{"Money:     not known: the ledger forgot whether renew:2026-03-29/sub_07#charge happened. Nothing is repeated"}, "nobody reported"},
		{"one unclear, one unreported", daybook.AlertUnknownOutcome, steps(because(step(key, "charge", daybook.EffectUnknown), "exit 1"), because(step(key, "extend", daybook.EffectUnknown), "nobody reported how it ended")),
			[]string{"were begun, and whether they happened is unknown. Nothing is repeated"}, "nobody reported how"},
		{"two unknown", daybook.AlertUnknownOutcome, steps(step(key, "charge", daybook.EffectUnknown), step(key, "extend", daybook.EffectUnknown)),
			[]string{"not known: renew:2026-03-29/sub_07#charge, renew:2026-03-29/sub_07#extend were begun", "--step charge --as done"}, "done:"},
		{"charged, the next refused", daybook.AlertDeadLetter, func(r *notice.Row, f *Facts) {
			steps(step(key, "charge", daybook.EffectDone), step(key, "extend", daybook.EffectRefused))(r, f)
			f.Job.UndoURL = "http://shop/undo"
		},
			[]string{"Money:     touched, once: renew:2026-03-29/sub_07#charge is done and is never begun again; not done: extend\n",
				"daybook dead replay renew:2026-03-29/sub_07   (same key, wire key renew:2026-03-29/sub_07#extend@2)", "daybook dead undo renew:2026-03-29/sub_07 --reason"}, "dismiss"},
		{"charged, failed outside", daybook.AlertDeadLetter, steps(step(key, "charge", daybook.EffectDone)),
			[]string{"Money:     touched, once: renew:2026-03-29/sub_07#charge is done", "(same key; what is done is not repeated)", "daybook dead dismiss"}, "undo"},
		{"nothing happened", daybook.AlertDeadLetter, steps(step(key, "charge", daybook.EffectRefused)),
			[]string{"Money:     not touched: the effect did not happen", "wire key renew:2026-03-29/sub_07#charge@2"}, "touched, once"},
		{"done twice, the second not known", daybook.AlertDoneTwice, func(r *notice.Row, f *Facts) {
			again := step(key, "charge", daybook.EffectBegun)
			again.Twice, again.Generation = again.WireKey(), 2
			steps(again)(r, f)
			r.LastError = "a late report says that it is done under renew:2026-03-29/sub_07#charge, and it was begun again under renew:2026-03-29/sub_07#charge@2"
		}, []string{"Money:     touched, perhaps twice: it was begun again under another wire key", "once it has both, give one back there"}, "touched twice"},
		{"done twice, the next refused", daybook.AlertDeadLetter, func(r *notice.Row, f *Facts) {
			twice := step(key, "charge", daybook.EffectDone)
			twice.Twice, twice.Generation = twice.WireKey(), 2
			steps(twice, step(key, "extend", daybook.EffectRefused))(r, f)
		}, []string{"Money:     touched twice: the far side has renew:2026-03-29/sub_07#charge, renew:2026-03-29/sub_07#charge@2, and one is to be given back there; not done: extend\n"}, "touched, once"},
		{"undo, nothing says how", daybook.AlertDeadLetter, taken(daybook.Letter{Kind: daybook.LetterUndo, State: daybook.LetterOpen, Error: daybook.UndoByHand + "charge: take it back by hand, or leave it, and dismiss this with the reason"}, step(undo, "receipt", daybook.EffectDone)),
			[]string{"Money:     touched, and not taken back: renew:2026-03-29/sub_07#charge; taken back: receipt\n", "Do:        take renew:2026-03-29/sub_07#charge back by hand, then   daybook dead dismiss renew:2026-03-29/sub_07~undo --reason"}, "(same key"},
		{"undo, done twice", daybook.AlertDeadLetter, func(r *notice.Row, f *Facts) {
			taken(daybook.Letter{Kind: daybook.LetterUndo, State: daybook.LetterOpen, Error: daybook.UndoByHand + "renew:2026-03-29/sub_07#charge (done twice): take it back by hand, or leave it, and dismiss this with the reason"},
				step(undo, "receipt", daybook.EffectDone), step(undo, "charge", daybook.EffectDone))(r, f)
			charge := f.Base.Records[0]
			charge.Generation, charge.Twice = 2, charge.WireKey()
		}, []string{"Money:     touched, and not taken back: renew:2026-03-29/sub_07#charge; taken back: receipt, charge\n",
			"Do:        take renew:2026-03-29/sub_07#charge back by hand, then   daybook dead dismiss renew:2026-03-29/sub_07~undo --reason"}, "#run"},
		{"undo, refused", daybook.AlertDeadLetter, taken(daybook.Letter{Kind: daybook.LetterUndo, State: daybook.LetterOpen, Error: "422 refund window is over"}, step(undo, "receipt", daybook.EffectDone), step(undo, "charge", daybook.EffectRefused)),
			[]string{"touched, and not taken back: renew:2026-03-29/sub_07#charge; taken back: receipt\n", "daybook dead replay renew:2026-03-29/sub_07~undo   (goes on taking back", "or take renew:2026-03-29/sub_07#charge back by hand, then   daybook dead dismiss renew:2026-03-29/sub_07~undo"}, "(same key"},
		{"undo, unknown", daybook.AlertUnknownOutcome, taken(daybook.Letter{Kind: daybook.LetterUnknown, State: daybook.LetterOpen, Error: "502"}, step(undo, "receipt", daybook.EffectUnknown)),
			[]string{"not known: taking it back, renew:2026-03-29/sub_07#receipt~undo, was begun", "It was taken back:   daybook run resolve renew:2026-03-29/sub_07~undo --step receipt --as done"}, "It happened"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, f := night(c.kind, c.change)
			var b strings.Builder
			for _, l := range lang.Languages {
				text := Write(lang.For(l), r, f)
				b.WriteString(text.Body + "\n" + text.Short + "\n\n")
				if l != lang.English {
					continue
				}
				for _, w := range c.want {
					if !strings.Contains(text.Body, w) {
						t.Errorf("no %q in\n%s", w, text.Body)
					}
				}
				if strings.Contains(text.Body, c.not) {
					t.Errorf("%q in\n%s", c.not, text.Body)
				}
			}
			golden.Equal(t, "testdata/texts/steps_"+strings.NewReplacer(" ", "_", ",", "").Replace(c.name)+".txt", b.String())
		})
	}
}

// TestMoneyOfSubjects: an alert that several subjects share says for which of them money moved.
func TestMoneyOfSubjects(t *testing.T) {
	r, f := night(daybook.AlertDeadLetter)
	f.Run = &daybook.Run{Key: "renew:2026-03-29", Job: "renew", Fans: true, Attempts: 1, State: daybook.Running, Zone: "Europe/Berlin", Effects: daybook.Once, Steps: true}
	f.Counts = &daybook.SubjectCounts{Of: 20, Letters: 3, States: map[daybook.State]int64{daybook.Done: 17}}
	for i, state := range []daybook.EffectState{daybook.EffectDone, daybook.EffectRefused, daybook.EffectRefused} {
		k := daybook.Key("renew:2026-03-29/sub_0" + string(rune('1'+i)))
		f.Subjects = append(f.Subjects, k)
		f.Runs = append(f.Runs, &daybook.Run{Key: k, Subject: string(k[len(k)-6:]), State: daybook.Dead, Effects: daybook.Once, Steps: true, Attempts: 1,
			Records: []*daybook.StepRecord{{Key: k, Step: "charge", State: state, Generation: 1}}})
	}
	body := Write(lang.For(lang.English), r, f).Body
	if want := "touched once for 1 (sub_01); not touched for 2 (sub_02, sub_03); Run: 17 of 20"; !strings.Contains(body, want) {
		t.Errorf("no %q in\n%s", want, body)
	}
	if zh := Write(lang.For(lang.Chinese), r, f).Body; !strings.Contains(zh, "1 个已动一次（sub_01）；2 个未动（sub_02、sub_03）") {
		t.Error(zh)
	}
}
