package daybook

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// doors is the table of triggers against states: one line a standing of the key, one column a group of doors. A cell is
// the outcome, the exit code and the HTTP code, why, and what the store does. The first columns have no codes: their
// outcome is a row. "-" cannot happen.
const doors = `
# the key is…                         | schedule catchup            | backfill                    | manual api event drill               | once                               | replay
new                                   | started: new → create       | started: new → create       | started 0/201: new → create          | started 0/201: new → create        | refused 5/404: no such key
new frozen                            | started: frozen → create held | started: frozen → create held | started 0/201: frozen → create held | started 0/201: frozen → create held | refused 5/404: no such key
new clock                             | started: clock not confirmed → create held | started: clock not confirmed → create held | started 0/201: clock not confirmed → create held | started 0/201: clock not confirmed → create held | refused 5/404: no such key
new ahead                             | -                           | -                           | refused 4/409: not open yet          | refused 125/409: not open yet      | refused 5/404: no such key
new ahead early                       | -                           | -                           | started 0/201: new → create          | started 0/201: new → create        | refused 5/404: no such key
new paused                            | refused: paused → skip paused | refused: paused → skip paused | refused 4/409: paused              | refused 125/409: paused            | refused 5/404: no such key
new paused ahead early                | -                           | -                           | refused 4/409: paused                | refused 125/409: paused            | refused 5/404: no such key
new unlisted                          | -                           | -                           | refused 4/409: not listed            | refused 125/409: not listed        | refused 5/404: no such key
new unlisted wanted                   | -                           | -                           | started 0/201: new → create          | started 0/201: new → create        | refused 5/404: no such key
done once unlisted                    | -                           | -                           | reused 0/200: done                   | reused 0/200: done                 | reused 0/200: done
new paused event                      | started: paused → create held | started: paused → create held | started 0/201: paused → create held | started 0/201: paused → create held | refused 5/404: no such key

scheduled                             | joined: scheduled           | joined: scheduled           | joined 0/202: scheduled              | joined 75/202: scheduled           | joined 0/202: scheduled
running                               | joined: running             | joined: running             | joined 0/202: running                | joined 75/202: running             | joined 0/202: running
retryable                             | joined: retryable           | joined: retryable           | joined 0/202: retryable              | joined 75/202: retryable           | joined 0/202: retryable
scheduled again                       | joined: scheduled           | joined: scheduled           | joined 0/202: scheduled              | joined 75/202: scheduled           | joined 0/202: scheduled

done repeatable                       | reused: done                | reused: done                | reused 0/200: done                   | reused 0/200: done                 | reused 0/200: done
done repeatable again                 | reused: done                | reused: done                | started 0/201: again → again         | started 0/201: again → again       | reused 0/200: done
done once                             | reused: done                | reused: done                | reused 0/200: done                   | reused 0/200: done                 | reused 0/200: done
done once again                       | reused: done                | reused: done                | refused 4/409: done once             | refused 125/409: done once         | reused 0/200: done
done once settled                     | reused: done                | reused: done                | reused 0/200: done                   | reused 0/200: done                 | reused 0/200: done
done undone                           | reused: final               | reused: final               | reused 1/200: final                  | reused 1/200: final                | refused 4/409: final
done undone again                     | reused: final               | reused: final               | refused 4/409: final                 | refused 125/409: final             | refused 4/409: final

dead failed open                      | refused: open letter        | refused: open letter        | refused 4/409: open letter           | refused 125/409: open letter       | started 0/201: replayed → replay
dead failed open again                | refused: open letter        | refused: open letter        | refused 4/409: open letter           | refused 125/409: open letter       | started 0/201: replayed → replay
dead undo open                        | refused: open letter        | refused: open letter        | refused 4/409: open letter           | refused 125/409: open letter       | started 0/201: replayed → replay
dead unknown open                     | refused: unknown            | refused: unknown            | refused 4/409: unknown               | refused 125/409: unknown           | refused 4/409: unknown
dead unknown open again               | refused: unknown            | refused: unknown            | refused 4/409: unknown               | refused 125/409: unknown           | refused 4/409: unknown
dead failed dismissed                 | reused: dismissed           | reused: dismissed           | reused 1/200: dismissed              | reused 1/200: dismissed            | refused 4/409: dismissed
dead failed compensated               | reused: final               | reused: final               | reused 1/200: final                  | reused 1/200: final                | refused 4/409: final
dead failed compensated again         | reused: final               | reused: final               | refused 4/409: final                 | refused 125/409: final             | refused 4/409: final

skipped                               | reused: skipped             | started: run skipped → run skipped | refused 4/409: skipped        | refused 125/409: skipped           | refused 4/409: nothing to replay
skipped run-skipped                   | reused: skipped             | started: run skipped → run skipped | started 0/201: run skipped → run skipped | started 0/201: run skipped → run skipped | refused 4/409: nothing to replay
skipped again                         | reused: skipped             | started: run skipped → run skipped | refused 4/409: skipped        | refused 125/409: skipped           | refused 4/409: nothing to replay
# The store asks again with the covering run; this is what is said when that would run something under the other key.
coalesced                             | reused: covered             | reused: covered             | refused 4/409: covered               | refused 125/409: covered           | refused 4/409: covered
cancelled                             | refused: cancelled          | refused: cancelled          | refused 4/409: cancelled             | refused 125/409: cancelled         | refused 4/409: cancelled
cancelled again                       | refused: cancelled          | refused: cancelled          | refused 4/409: cancelled             | refused 125/409: cancelled         | refused 4/409: cancelled

# Another payload of the caller's, under every state: what brings none is never compared.
scheduled payload                     | joined: scheduled           | joined: scheduled           | refused 4/422: other payload         | refused 125/422: other payload     | joined 0/202: scheduled
running payload                       | joined: running             | joined: running             | refused 4/422: other payload         | refused 125/422: other payload     | joined 0/202: running
retryable payload                     | joined: retryable           | joined: retryable           | refused 4/422: other payload         | refused 125/422: other payload     | joined 0/202: retryable
done repeatable payload               | reused: done                | reused: done                | refused 4/422: other payload         | refused 125/422: other payload     | reused 0/200: done
done repeatable again payload         | reused: done                | reused: done                | refused 4/422: other payload         | refused 125/422: other payload     | reused 0/200: done
dead failed open payload              | refused: open letter        | refused: open letter        | refused 4/422: other payload         | refused 125/422: other payload     | started 0/201: replayed → replay
dead unknown open payload             | refused: unknown            | refused: unknown            | refused 4/422: other payload         | refused 125/422: other payload     | refused 4/409: unknown
dead failed dismissed payload         | reused: dismissed           | reused: dismissed           | refused 4/422: other payload         | refused 125/422: other payload     | refused 4/409: dismissed
skipped run-skipped payload           | reused: skipped             | started: run skipped → run skipped | refused 4/422: other payload  | refused 125/422: other payload     | refused 4/409: nothing to replay
coalesced payload                     | reused: covered             | reused: covered             | refused 4/422: other payload         | refused 125/422: other payload     | refused 4/409: covered
cancelled payload                     | refused: cancelled          | refused: cancelled          | refused 4/422: other payload         | refused 125/422: other payload     | refused 4/409: cancelled
`

var doorColumns = [][]Source{
	{SourceSchedule, SourceCatchup}, {SourceBackfill}, {SourceManual, SourceAPI, SourceEvent, SourceDrill}, {SourceOnce}, {SourceReplay},
}

var sources = slices.Concat(doorColumns...)

func TestEveryDoorMeetsEveryState(t *testing.T) {
	eachLine(t, doors, 1+len(doorColumns), func(t *testing.T, cells []string) {
		a, s := standingFrom(t, cells[0])
		for i, want := range cells[1:] {
			for _, source := range doorColumns[i] {
				if want == "-" {
					continue
				}
				a.Source = source
				got := Decide(a, s)
				if text := replyText(got, i < 2); text != want {
					t.Errorf("%s: %s, want %s", source, text, want)
				}
			}
		}
	})
}

// standingFrom reads the first column of the table.
func standingFrom(t *testing.T, words string) (a Ask, s Standing) {
	a.Key = "renew:2026-10-26"
	for word := range strings.FieldsSeq(words) {
		switch word {
		case "new":
		case "frozen":
			s.Held = ReasonFrozen
		case "clock":
			s.Held = ReasonClock
		case "ahead":
			s.NotOpen = true
		case "unlisted":
			a.NotListed = true
		case "wanted":
			a.Unlisted = true
		case "early":
			a.Early, a.Note = true, "wanted today"
		case "paused":
			s.Paused = true
		case "event":
			s.EventJob = true
		case "again":
			a.Again = true
		case "run-skipped":
			a.RunSkipped = true
		case "payload":
			s.OtherPayload = true
		case "undone":
			s.Undone = true
		case "repeatable", "once":
			s.Effects = Effects(word)
		case "failed", "unknown", "undo":
			s.LetterKind = LetterKind(word)
		case "settled":
			s.LetterKind, s.LetterState = LetterUnknown, LetterSettled
		case "open", "dismissed", "compensated":
			s.LetterState = LetterState(word)
		default:
			if !slices.Contains(States, State(word)) {
				t.Fatalf("unknown word %q", word)
			}
			s.Exists, s.State = true, State(word)
		}
	}
	return a, s
}

func replyText(r Reply, row bool) string {
	text := string(r.Outcome)
	if !row {
		text += fmt.Sprintf(" %d/%d", r.Exit, r.HTTP)
	}
	text += ": " + r.Because
	if r.Act != ActNone {
		text += " → " + string(r.Act)
	}
	return text
}

// becauses are all reasons that an answer may give.
var becauses = []string{BecauseNew, BecauseNoKey, BecauseNotOpen, BecausePaused, BecauseScheduled, BecauseRunning, BecauseRetryable, BecauseDone,
	BecauseAgain, BecauseOnce, BecauseLetter, BecauseUnknown, BecauseDismissed, BecauseFinal, BecauseUndoing, BecauseSkipped, BecauseRunSkipped, BecauseCovered,
	BecauseCancelled, BecausePayload, BecauseReplayed, BecauseNothingToReplay, string(ReasonFrozen), string(ReasonClock)}

// Every door, state, letter and wish together: what holds for all of them.
func TestEveryCombinationHasAnAnswer(t *testing.T) {
	bools := []bool{false, true}
	seen := map[string]bool{}
	for _, source := range sources {
		for _, state := range append([]State{""}, States...) {
			for _, kind := range []LetterKind{"", LetterFailed, LetterUnknown, LetterUndo} {
				for _, letter := range []LetterState{"", LetterOpen, LetterReplayed, LetterCompensated, LetterDismissed, LetterSettled} {
					for flags := range 1 << 8 {
						flag := func(i int) bool { return bools[flags>>i&1] }
						a := Ask{Key: "renew:2026-10-26", Source: source, Again: flag(0), Early: flag(1), RunSkipped: flag(2)}
						s := Standing{Exists: state != "", State: state, LetterKind: kind, LetterState: letter, Effects: Repeatable,
							OtherPayload: flag(3), NotOpen: flag(4), Paused: flag(5), EventJob: flag(6)}
						if flag(7) {
							s.Effects, s.Held, s.Undone, s.Undoing = Once, ReasonFrozen, flag(5), flag(6)
						}
						r := Decide(a, s)
						if fault := replyFault(a, s, r); fault != "" {
							t.Fatalf("%+v\n%+v\n%+v\n%s", a, s, r, fault)
						}
						seen[r.Because] = true
					}
				}
			}
		}
	}
	seen[string(ReasonClock)] = true // in the table above
	for _, because := range becauses {
		if !seen[because] {
			t.Errorf("nothing is answered with %q", because)
		}
	}
}

func replyFault(a Ask, s Standing, r Reply) string {
	byClock := slices.Contains([]Source{SourceSchedule, SourceCatchup, SourceBackfill}, a.Source)
	want := map[TriggerOutcome][]string{ // exit/HTTP
		Started: {"0/201"},
		Joined:  {"0/202"},
		Reused:  {"0/200", "1/200"},
		Refused: {"4/409", "4/422", "5/404"},
	}
	if a.Source == SourceOnce {
		want[Joined], want[Refused] = []string{"75/202"}, []string{"125/409", "125/422"}
	}
	runs := r.Act != ActNone && r.Act != ActSkipPaused
	switch codes := fmt.Sprintf("%d/%d", r.Exit, r.HTTP); {
	case !slices.Contains(want[r.Outcome], codes):
		return "no such codes for " + string(r.Outcome)
	case !slices.Contains(becauses, r.Because):
		return "no such reason"
	case (r.Outcome == Started) != runs:
		return "what started does something, what did not does nothing"
	case s.State.Live() && r.Outcome == Refused && r.Because != BecausePayload,
		s.State == Dead && r.Because == string(Dead), s.State == Coalesced && r.Because == string(Coalesced):
		return "the state was not known to the table"
	case r.Act == ActAgain && (s.State != Done || s.Effects == Once || s.Undone || byClock || a.Source == SourceReplay):
		return "a further attempt is for done, repeatable work, asked for by somebody"
	case r.Act == ActReplay && (s.State != Dead || s.LetterKind == LetterUnknown || a.Source != SourceReplay):
		return "only replay replays, and never what is unknown"
	case r.Act == ActRunSkipped && s.State != Skipped, r.Act == ActCreate && s.Exists, r.Act == ActCreateHeld && s.Exists:
		return "a key is made once"
	case s.Exists && (byClock && a.Source != SourceBackfill) && r.Outcome == Started:
		return "a schedule never runs a key a second time"
	case s.OtherPayload && r.Because == BecausePayload && (byClock || a.Source == SourceReplay):
		return "what brings no payload is not compared"
	}
	return ""
}

func TestAStateThatNobodyKnowsIsRefused(t *testing.T) {
	if r := Decide(Ask{Source: SourceManual}, Standing{Exists: true, State: "odd"}); r.Outcome != Refused || r.Act != ActNone {
		t.Errorf("%+v", r)
	}
}

func TestHashPayload(t *testing.T) {
	hash := func(p string) string {
		t.Helper()
		h, err := HashPayload(json.RawMessage(p))
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		return h
	}
	if h := hash(""); h != "" {
		t.Errorf("no payload has the fingerprint %s", h)
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":[2,3]}`, ` { "b" : [ 2, 3 ] , "a" : 1 } `, true},
		{`{"a":"\u00e9"}`, `{"a":"é"}`, true},
		{`{"a":"<"}`, `{"a":"\u003c"}`, true},
		{`{}`, `null`, false},
		{`{"a":1}`, `{"a":2}`, false},
		{`{"a":1}`, `{"a":1.0}`, false}, // numbers keep their digits
		{`{"a":1}`, `{"a":"1"}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`{"a":12345678901234567890}`, `{"a":12345678901234567891}`, false},
	} {
		if got := hash(c.a) == hash(c.b); got != c.same {
			t.Errorf("%s and %s are the same: %v", c.a, c.b, got)
		}
	}
	for _, p := range []string{`{`, `{} {}`, `nope`, ` `, "{\"a\":\"\xff\"}", `{"a":` + strings.Repeat("1", MaxPayloadBytes) + `}`} {
		if h, err := HashPayload(json.RawMessage(p)); !errors.Is(err, ErrInvalid) || h != "" {
			t.Errorf("%s: %s %v", Clip(p, 20), h, err)
		}
	}
}

// TestAmbiguousJSON: what two readers could take for different things is refused, with its place.
func TestAmbiguousJSON(t *testing.T) {
	for p, want := range map[string]string{
		`{"a":1,"a":2}`: `line 1, column 8: the name "a" stands twice in one object`,
		"{\n  \"b\": [{\"x\": 1},\n {\"é\": 2, \"\\u00e9\": 3}]}": `line 3, column 12: the name "é" stands twice in one object`,
		`{"cents":1e999}`: "line 1, column 10: the number 1e999 is too large: some readers would take it for another",
		"[1,\n-1e400 ]":   "line 2, column 1: the number -1e400 is too large: some readers would take it for another",
		`{"a":1} {}`:      "line 1, column 9: invalid character '{' after top-level value",
		"{\n\"a\" 1}":     "line 2, column 5: invalid character '1' after object key",
		`{"a":`:           "line 1, column 6: the text ends too soon",
		`[1,2`:            "line 1, column 5: the text ends too soon",
		``:                "line 1, column 1: the text ends too soon",
		`nope`:            "line 1, column 2: invalid character 'o' in literal null (expecting 'u')",
	} {
		if err := CheckJSON([]byte(p)); CodeOf(err) != CodeInvalid || err.Error() != want {
			t.Errorf("%q: %v, want %s", p, err, want)
		}
	}
	for _, p := range []string{`{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`, `1e308`, `1e-999`, `[]`, `{}`, ` "x" `, `null`} {
		if err := CheckJSON([]byte(p)); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	_, err := HashPayload(json.RawMessage(`{"a":1,"a":2}`))
	if CodeOf(err) != CodeInvalid || !strings.Contains(err.Error(), "line 1, column 8") {
		t.Error(err)
	}
}

func FuzzHashPayload(f *testing.F) {
	for _, p := range []string{`{"a":1}`, `[1,{"b":null}]`, `"x"`, `1e400`, `{"a":1,"a":2}`, "\xff", `"\ud800"`} {
		f.Add([]byte(p))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		h, err := HashPayload(p)
		if err != nil {
			if CodeOf(err) != CodeInvalid || h != "" {
				t.Fatalf("%q %v", h, err)
			}
			return
		}
		if len(p) == 0 {
			return
		}
		if !json.Valid(p) || len(h) != 64 {
			t.Fatalf("%q of %q", h, p)
		}
		canonical, err := canonicalJSON(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := HashPayload(canonical)
		if err != nil || again != h {
			t.Fatalf("%q and its canonical form %q have the fingerprints %s and %s, %v", p, canonical, h, again, err)
		}
	})
}

// TestTriggersOfARunWithSubjects is the row of the table about them: counts stand in the answer.
func TestTriggersOfARunWithSubjects(t *testing.T) {
	letters := Standing{Exists: true, State: Running, FannedOut: true, Failed: true}
	unknown := Standing{Exists: true, State: Running, FannedOut: true, Unknown: true}
	both := Standing{Exists: true, State: Retryable, FannedOut: true, Failed: true, Unknown: true}
	underWay := Standing{Exists: true, State: Running, FannedOut: true, UnderWay: true, Failed: true, Unknown: true}
	for _, c := range []struct {
		source Source
		s      Standing
		want   Reply
	}{
		{SourceSchedule, letters, Reply{Refused, ActNone, 4, 409, BecauseSubjects}},
		{SourceManual, letters, Reply{Refused, ActNone, 4, 409, BecauseSubjects}},
		{SourceAPI, unknown, Reply{Refused, ActNone, 4, 409, BecauseSubjects}},
		{SourceReplay, letters, Reply{Started, ActReplaySubjects, 0, 201, BecauseReplayed}},
		{SourceReplay, both, Reply{Started, ActReplaySubjects, 0, 201, BecauseReplayed}},
		{SourceReplay, unknown, Reply{Refused, ActNone, 4, 409, BecauseSubjects}},
		{SourceManual, underWay, Reply{Joined, ActNone, 0, 202, BecauseRunning}},
		{SourceReplay, underWay, Reply{Started, ActReplaySubjects, 0, 201, BecauseReplayed}},
		{SourceReplay, Standing{Exists: true, State: Running, FannedOut: true, UnderWay: true, Unknown: true}, Reply{Joined, ActNone, 0, 202, BecauseRunning}},
		{SourceSchedule, underWay, Reply{Joined, ActNone, 0, 202, BecauseRunning}},
		{SourceManual, Standing{Exists: true, State: Running, FannedOut: true}, Reply{Joined, ActNone, 0, 202, BecauseRunning}},
		{SourceOnce, letters, Reply{Refused, ActNone, ExitDaybook, 409, BecauseSubjects}},
	} {
		if got := Decide(Ask{Source: c.source}, c.s); got != c.want {
			t.Errorf("%s of %+v: %+v, want %+v", c.source, c.s, got, c.want)
		}
	}
}
