package daybook

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// noon is the instant of all transitions of the tables.
var noon = time.Date(2026, 10, 26, 12, 0, 0, 0, time.UTC)

// How an attempt's end moves a run. One line a case: what the run is, what its job says, how the attempt ended, and
// what follows: state (reason) +when it is due, fN failures, lN losses in a row; then the rows that change with it.
//
// A run of these tables is running, fence 3, in its first attempt. "begun" and "open" speak of the attempt as one
// effect: marked, and marked while an earlier try under its wire key has no answer; @2 is its second wire key. "stop": a
// person asked for the end of the attempt. "cut": a shutdown did. Retries wait 1 m, 5 m, 25 m without jitter.
const ends = `
# Work that may be repeated.
repeatable                       |                 | done            | done
repeatable f2 l2                 |                 | done            | done f2 l2
repeatable                       |                 | not_done        | retryable (retry) +1m f1
repeatable f1                    |                 | not_done        | retryable (retry) +5m f2
repeatable f2                    |                 | not_done        | retryable (retry) +25m f3
repeatable f3                    |                 | not_done        | dead f4; letter failed; alert dead_letter
repeatable                       | no-ladder       | not_done        | dead f1; letter failed; alert dead_letter
repeatable                       |                 | not_done +10m   | retryable (retry) +10m f1
repeatable                       |                 | not_done +30s   | retryable (retry) +1m f1
repeatable                       |                 | not_done +48h   | retryable (retry) +24h f1
repeatable                       |                 | permanent       | dead; letter failed; alert dead_letter
repeatable                       |                 | permanent cut   | dead; letter failed; alert dead_letter
repeatable l2                    |                 | unclear         | retryable (retry) +1m f1
repeatable f3                    | probe remembers | unclear         | dead f4; letter failed; alert dead_letter
repeatable                       |                 | unknown         | retryable (retry) +1m f1
repeatable                       | probe remembers | unknown         | retryable (retry) +1m f1
repeatable                       |                 | lost            | retryable (lost) +0s l1
repeatable l1                    |                 | lost            | retryable (lost) +0s l2
repeatable l2                    |                 | lost            | dead l3; letter failed; alert dead_letter
repeatable f3                    |                 | lost            | retryable (lost) +0s f3 l1
repeatable                       | no-ladder       | lost            | retryable (lost) +0s l1
repeatable                       |                 | busy            | retryable (retry) +1m
repeatable f1 l2                 |                 | busy +90s       | retryable (retry) +1m30s f1
repeatable                       |                 | busy +48h       | retryable (retry) +24h
repeatable due-23h59m            |                 | busy            | retryable (retry) +1m
repeatable due-24h               |                 | busy            | retryable (retry) +1m f1
repeatable due-72h made-1h       |                 | busy            | retryable (retry) +1m
repeatable                       |                 | interrupted     | scheduled (interrupted) -1m
repeatable try2 f1               |                 | interrupted     | retryable (interrupted) -1m f1
repeatable f1 l2                 |                 | not_done cut    | retryable (interrupted) +0s f1
repeatable                       |                 | unclear cut     | retryable (interrupted) +0s
repeatable                       |                 | unknown cut     | retryable (interrupted) +0s

# A person asked for the end.
repeatable stop                  |                 | done            | done
repeatable stop                  |                 | not_done        | cancelled
repeatable stop                  |                 | permanent       | cancelled
repeatable stop                  |                 | unclear         | cancelled
repeatable stop                  |                 | unknown         | cancelled
repeatable stop                  |                 | busy            | cancelled
repeatable stop l2               |                 | lost            | cancelled l2
repeatable stop                  |                 | interrupted     | cancelled

# A further attempt of a run that is done: its failure does not undo done.
repeatable again                 |                 | done            | done
repeatable again                 |                 | not_done        | done keep
repeatable again                 |                 | permanent       | done keep
repeatable again                 |                 | unclear         | done keep
repeatable again                 |                 | unknown         | done keep
repeatable again l2              |                 | lost            | done l2 keep
repeatable again                 |                 | busy            | done keep
repeatable again                 |                 | unclear cut     | done keep
repeatable again stop            |                 | unclear         | done keep
repeatable again                 |                 | interrupted     | scheduled (interrupted) -1m again

# Work that may be done once only, claimed and not begun.
once                             |                 | not_done        | retryable (retry) +1m f1
once                             |                 | unclear         | retryable (retry) +1m f1
once                             |                 | permanent       | dead; letter failed; alert dead_letter
once                             |                 | lost            | retryable (lost) +0s l1
once l2                          |                 | lost            | dead l3; letter failed; alert dead_letter
once                             |                 | interrupted     | scheduled (interrupted) -1m
once try2                        |                 | interrupted     | retryable (interrupted) -1m
once stop                        |                 | lost            | cancelled
once stop                        |                 | interrupted     | cancelled
# The same, while an earlier try is open: no letter may say that it did not happen.
once unknown                     | remembers       | lost            | retryable (lost) +0s l1
once unknown l2                  | remembers       | lost            | dead l3; letter unknown; alert unknown_outcome
once unknown                     | remembers       | permanent       | dead; letter unknown; alert unknown_outcome
once unknown f3                  | remembers       | not_done        | dead f4; letter unknown; alert unknown_outcome
once unknown try2                | remembers       | interrupted     | retryable (interrupted) -1m
once unknown stop                | remembers       | lost            | dead; letter unknown; alert unknown_outcome
once unknown stop                | remembers       | interrupted     | dead; letter unknown; alert unknown_outcome
# The mark of an earlier claim, left behind by a rescue that had not seen it, is as open.
once begun older                 |                 | not_done        | retryable (retry) +1m f1
once begun older f3              |                 | not_done        | dead f4; letter unknown; alert unknown_outcome
once begun older                 |                 | permanent       | dead; letter unknown; alert unknown_outcome
once begun older stop            |                 | interrupted     | dead; letter unknown; alert unknown_outcome
once begun older try2            |                 | interrupted     | retryable (interrupted) -1m

# Begun.
once begun                       |                 | done            | done; effect done
once begun f1                    | probe remembers | done            | done f1; effect done
once begun                       |                 | not_done        | retryable (retry) +1m f1; effect not_done
once begun f2                    |                 | not_done        | retryable (retry) +25m f3; effect not_done
once begun f3                    |                 | not_done        | dead f4; effect not_done; letter failed; alert dead_letter
once begun                       | probe remembers | not_done        | retryable (retry) +1m f1; effect not_done
once begun                       |                 | not_done +10m   | retryable (retry) +10m f1; effect not_done
once begun f1                    |                 | not_done cut    | retryable (interrupted) +0s f1; effect not_done
once begun                       |                 | permanent       | dead; effect refused; letter failed; alert dead_letter
once begun@2                     | probe remembers | permanent       | dead; effect refused@2; letter failed; alert dead_letter
once begun                       |                 | interrupted     | scheduled (interrupted) -1m; effect not_done
# Unclear, unknown and lost are one thing: asked for, remembered, or a person's.
once begun                       |                 | unclear         | dead f1; effect unknown; letter unknown; alert unknown_outcome
once begun                       |                 | unknown         | dead f1; effect unknown; letter unknown; alert unknown_outcome
once begun                       |                 | lost            | dead f1; effect unknown; letter unknown; alert unknown_outcome
once begun                       | remembers       | unclear         | retryable (retry) +1m f1; effect unknown
once begun                       | remembers       | unknown         | retryable (retry) +1m f1; effect unknown
once begun l2                    | remembers       | lost            | retryable (retry) +1m f1; effect unknown
once begun                       | remembers       | unclear cut     | retryable (retry) +1m f1; effect unknown
once begun@2 f1                  | remembers       | lost            | retryable (retry) +5m f2; effect unknown@2
once begun f3                    | remembers       | unclear         | dead f4; effect unknown; letter unknown; alert unknown_outcome
once begun                       | remembers no-ladder | lost        | dead f1; effect unknown; letter unknown; alert unknown_outcome
once begun first-22h58m59s       | remembers       | unclear         | retryable (retry) +1m f1; effect unknown
once begun first-22h59m          | remembers       | unclear         | dead f1; effect unknown; letter unknown; alert unknown_outcome
once begun first-999h            | forever         | unclear         | retryable (retry) +1m f1; effect unknown
once begun                       | remembers       | unclear +23h    | dead f1; effect unknown; letter unknown; alert unknown_outcome
once begun                       | probe           | unclear         | retryable (settling) +0s; effect unknown
once begun                       | probe           | unknown         | retryable (settling) +0s; effect unknown
once begun                       | probe           | lost            | retryable (settling) +0s; effect unknown
once begun f3                    | probe remembers | lost            | retryable (settling) +0s f3; effect unknown
# The far side is at work under this wire key.
once begun                       |                 | busy            | dead f1; effect unknown; letter unknown; alert unknown_outcome
once begun                       | probe           | busy            | retryable (settling) +0s; effect unknown
once begun f1                    | remembers       | busy            | retryable (retry) +1m f1; effect unknown
once begun                       | remembers probe | busy +90s       | retryable (retry) +1m30s; effect unknown
once begun                       | remembers       | busy +23h       | dead f1; effect unknown; letter unknown; alert unknown_outcome
once begun first-24h             | forever         | busy            | retryable (retry) +1m f1; effect unknown
# An earlier try is open: settled in the same order, never by a refusal.
once begun open                  | remembers       | done            | done; effect done open
once begun open                  | remembers       | not_done        | retryable (retry) +1m f1; effect unknown open
once begun open                  | remembers       | permanent       | retryable (retry) +1m f1; effect unknown open
once begun open                  | probe remembers | not_done        | retryable (settling) +0s; effect unknown open
once begun open                  | probe           | permanent       | retryable (settling) +0s; effect unknown open
once begun open                  |                 | not_done        | dead f1; effect unknown open; letter unknown; alert unknown_outcome
once begun open f3               | remembers       | permanent       | dead f4; effect unknown open; letter unknown; alert unknown_outcome
once begun open                  | remembers       | not_done cut    | retryable (retry) +1m f1; effect unknown open
once begun open try2             | remembers       | interrupted     | retryable (interrupted) -1m; effect unknown open
# A person asked for the end: a begun effect becomes unknown, never cancelled.
once begun stop                  |                 | done            | done; effect done
once begun stop                  |                 | not_done        | cancelled; effect not_done
once begun stop                  |                 | permanent       | cancelled; effect refused
once begun stop                  |                 | interrupted     | cancelled; effect not_done
once begun stop                  |                 | unclear         | dead f1; effect unknown; letter unknown; alert unknown_outcome
once begun stop                  | remembers       | unknown         | dead f1; effect unknown; letter unknown; alert unknown_outcome
once begun stop                  | remembers       | busy            | dead f1; effect unknown; letter unknown; alert unknown_outcome
once begun stop                  | probe           | lost            | retryable (settling) +0s; effect unknown
once begun stop open             | remembers       | not_done        | dead f1; effect unknown open; letter unknown; alert unknown_outcome
once begun stop open             | remembers       | interrupted     | dead f1; effect unknown open; letter unknown; alert unknown_outcome
`

func TestEnds(t *testing.T) {
	eachLine(t, ends, 4, func(t *testing.T, cells []string) {
		r := runFrom(t, cells[0])
		o := outcomeFrom(t, cells[2])
		m := r.Next(o, policyFrom(t, cells[1]), noon)
		compareMove(t, r, m, cells[3])
		switch {
		case o.Result == ResultInterrupted && r.CancelledBy == "":
			if m.On != OnHandBack || m.Attempt != nil {
				t.Errorf("on %q, attempt %+v: handed back, no try", m.On, m.Attempt)
			}
			return
		case o.Result == ResultLost:
			if m.On != OnLost || m.Error == "" {
				t.Errorf("on %q, error %q", m.On, m.Error)
			}
		case m.On != OnReport:
			t.Errorf("on %q", m.On)
		}
		if a := m.Attempt; a == nil || a.Fence != 3 || a.Claim != "c3" || a.Result != o.Result || !a.EndedAt.Equal(noon) || a.WireKey != r.WireKey() {
			t.Errorf("attempt %+v", m.Attempt)
		}
	})
}

// What follows a question to the far side. The last try ended 5 m before noon unless "ended" says otherwise; answers are
// newest wire key first.
const answers = `
settling unknown                 | probe           | yes             | done; effect done by probe
settling unknown ended-0s        | probe           | yes             | done; effect done by probe
settling unknown@2               | probe           | yes,no          | done; effect done@2 by probe
settling unknown@2               | probe           | no,yes          | done; effect done by probe
settling unknown@3               | probe           | ?,no,yes        | done; effect done by probe
settling unknown@2               | probe           | yes,yes         | done; effect done@2 by probe; alert done_twice
settling unknown open            | probe           | yes             | done; effect done open by probe
settling unknown stop            | probe           | yes             | done; effect done by probe

settling unknown ended-0s        | probe           | no              | retryable (settling) +5m; effect unknown
settling unknown ended-4m59s     | probe           | no              | retryable (settling) +1s; effect unknown
settling unknown ended-0s f3     | probe remembers | no              | retryable (settling) +5m f3; effect unknown
settling unknown                 | probe           | no              | retryable (retry) +1m f1; effect not_done@2 by probe
settling unknown open f1         | probe remembers | no              | retryable (retry) +5m f2; effect not_done@2 by probe
settling unknown@2               | probe           | no,no           | retryable (retry) +1m f1; effect not_done@3 by probe
settling unknown f3              | probe remembers | no              | dead f4; effect not_done@2 by probe; letter failed; alert dead_letter
settling unknown stop            | probe           | no              | cancelled; effect not_done@2 by probe
settling unknown stop ended-0s   | probe           | no              | retryable (settling) +5m; effect unknown

settling unknown                 | probe           | ?               | dead f1; effect unknown; letter unknown; alert unknown_outcome
settling unknown@2               | probe           | no,?            | dead f1; effect unknown@2; letter unknown; alert unknown_outcome
settling unknown@2               | probe           | ?,no            | dead f1; effect unknown@2; letter unknown; alert unknown_outcome
settling unknown                 | probe remembers | ?               | retryable (retry) +1m f1; effect unknown
settling unknown ended-0s        | probe remembers | ?               | retryable (retry) +1m f1; effect unknown
settling unknown f3              | probe remembers | ?               | dead f4; effect unknown; letter unknown; alert unknown_outcome
settling unknown first-23h       | probe remembers | ?               | dead f1; effect unknown; letter unknown; alert unknown_outcome
settling unknown first-999h      | probe forever   | ?               | retryable (retry) +1m f1; effect unknown
settling unknown stop            | probe remembers | ?               | dead f1; effect unknown; letter unknown; alert unknown_outcome
# The probe is gone from the definition.
settling unknown                 |                 |                 | dead f1; effect unknown; letter unknown; alert unknown_outcome
settling unknown                 | remembers       |                 | retryable (retry) +1m f1; effect unknown

# Asked again by a person: the letter stands open, the try was counted before.
settling unknown f1 L:unknown    | probe           | yes             | done f1; effect done by probe; close settled by probe
settling unknown f1 L:unknown    | probe           | no              | retryable (retry) +1m f1; effect not_done@2 by probe; close settled by probe
settling unknown f4 L:unknown    | probe           | no              | dead f4; effect not_done@2 by probe; letter failed; close settled by probe; alert dead_letter
settling unknown f1 L:unknown ended-0s | probe     | no              | retryable (settling) +5m f1; effect unknown
settling unknown f1 L:unknown    | probe           | ?               | dead f1; effect unknown; reopen unknown; alert unknown_outcome
settling unknown f1 L:unknown    | probe remembers | ?               | dead f1; effect unknown; reopen unknown; alert unknown_outcome
settling unknown f4 L:unknown    | probe           | ?               | dead f4; effect unknown; reopen unknown; alert unknown_outcome
`

func TestSettle(t *testing.T) {
	eachLine(t, answers, 4, func(t *testing.T, cells []string) {
		r := runFrom(t, cells[0])
		var found []Finding
		for i, word := range strings.Split(cells[2], ",") {
			answer, ok := map[string]Answer{"yes": Yes, "no": No, "?": CannotTell}[word]
			if ok {
				found = append(found, Finding{Answer: answer, WireKey: r.Key.WireKey(StepRun, r.Effect.Generation-i)})
			}
		}
		m := r.Settle(found, policyFrom(t, cells[1]), noon, noon)
		compareMove(t, r, m, cells[3])
		if m.On != OnProbe || m.Asking != "q1" || m.Attempt != nil {
			t.Errorf("%+v", m)
		}
	})
}

// A no counts by the instant at which it was asked, not at which it was answered.
func TestANoIsAsOldAsItsQuestion(t *testing.T) {
	r := runFrom(t, "settling unknown ended-5m")
	m := r.Settle([]Finding{{Answer: No, WireKey: string(r.Key)}}, policyFrom(t, "probe"), noon.Add(-time.Second), noon)
	if got := moveText(m); got != "retryable (settling) +0s; effect unknown" {
		t.Error(got)
	}
}

// A report that comes after its attempt was declared over. "refused" is kept as evidence only.
const lateReports = `
settling unknown                 | probe           | done            | done; effect done by late report
retry unknown f1                 | remembers       | done            | done f1; effect done by late report
retry unknown open f1            | remembers       | done            | done f1; effect done open by late report
dead unknown f1 L:unknown        |                 | done            | done f1; effect done by late report; close settled by late report
dead l3 L:failed                 |                 | done            | done l3; close settled by late report
dead repeatable f4 L:failed      |                 | done            | done f4; close settled by late report
lost repeatable l1               |                 | done            | done l1
retry not_done f1                |                 | done            | done f1; effect done by late report
# After a definite no, which was wrong: done under the wire key of that try.
retry renewed@2 f1               | probe           | done            | done f1; effect done by late report
replayed renewed@2               |                 | done            | done; effect done by late report
settling unknown f1 L:unknown    | probe           | done            | done f1; effect done by late report; close settled by late report
settling unknown stop            | probe           | done            | done; effect done by late report
# Not done settles what is open, counted once.
settling unknown                 | probe           | not_done        | retryable (retry) +1m f1; effect not_done by late report
retry unknown f1                 | remembers       | not_done        | retryable (retry) +1m f1; effect not_done by late report
retry unknown f3                 | remembers       | not_done        | retryable (retry) +25m f3; effect not_done by late report
dead unknown f1 L:unknown        |                 | not_done        | retryable (retry) +1m f1; effect not_done by late report; close settled by late report
dead unknown f4 L:unknown        | remembers       | not_done        | dead f4; effect not_done by late report; letter failed; close settled by late report; alert dead_letter
settling unknown                 | probe           | permanent       | dead; effect refused by late report; letter failed; alert dead_letter
dead unknown f1 L:unknown        |                 | permanent       | dead f1; effect refused by late report; letter failed; close settled by late report; alert dead_letter
settling unknown stop            | probe           | not_done        | cancelled; effect not_done by late report
settling unknown stop            | probe           | permanent       | cancelled; effect refused by late report
# An earlier try under the wire key is open: only done settles that.
retry unknown open f1            | remembers       | not_done        | refused
dead unknown open f4 L:unknown   | remembers       | permanent       | refused
# The effect is of an earlier try: the claim that reports did not begin.
lost unknown older l1            | remembers       | not_done        | refused
# What says nothing, settles nothing.
settling unknown                 | probe           | unclear         | refused
settling unknown                 | probe           | unknown         | refused
settling unknown                 | probe           | busy            | refused
settling unknown                 | probe           | interrupted     | refused
retry not_done f1                |                 | not_done        | refused
retry repeatable f1              |                 | not_done        | refused
dead refused L:failed            |                 | permanent       | refused
retry renewed@2 f1               | probe           | not_done        | refused
# The run has gone on, or rests.
scheduled repeatable             |                 | done            | refused
running repeatable               |                 | done            | refused
done repeatable                  |                 | done            | refused
done repeatable                  |                 | not_done        | refused
cancelled repeatable             |                 | done            | refused
skipped repeatable               |                 | done            | refused
coalesced repeatable             |                 | done            | refused
dead repeatable f4 L:failed/dismissed |            | done            | refused
dead refused L:failed/compensated |                | done            | refused
`

func TestLate(t *testing.T) {
	eachLine(t, lateReports, 4, func(t *testing.T, cells []string) {
		r := runFrom(t, cells[0])
		o := outcomeFrom(t, cells[2])
		m, taken := r.Late(o, policyFrom(t, cells[1]), noon)
		if !taken {
			if cells[3] != "refused" {
				t.Errorf("refused, want %s", cells[3])
			}
			return
		}
		compareMove(t, r, m, cells[3])
		if a := m.Attempt; m.On != OnLateReport || a == nil || a.LateResult != o.Result || !a.LateTaken || a.Fence != 3 {
			t.Errorf("on %q, attempt %+v", m.On, m.Attempt)
		}
	})
}

// What a person does.
const acts = `
resolve done                     | dead unknown f1 L:unknown           |       | done f1; effect done by ops; close settled by ops
resolve done                     | dead unknown@2 open f4 L:unknown    |       | done f4; effect done@2 open by ops; close settled by ops
resolve not-done                 | dead unknown f4 L:unknown           |       | retryable (replayed) +0s; effect not_done@2 by ops; close settled by ops
resolve not-done                 | dead unknown@2 open f1 L:unknown    | probe | retryable (replayed) +0s; effect not_done@3 by ops; close settled by ops
resolve ask                      | dead unknown f4 L:unknown           | probe | retryable (settling) +0s f4; effect unknown
resolve ask                      | dead unknown f4 L:unknown           | remembers | refused
resolve maybe                    | dead unknown f4 L:unknown           | probe | invalid
# Left behind by a rescue that had not seen the mark: the end of the try is now at the latest.
resolve ask                      | dead begun L:unknown                | probe | retryable (settling) +0s; effect unknown
resolve done                     | dead refused L:failed               |       | refused
resolve done                     | dead not_done f4 L:failed           |       | refused
resolve done                     | settling unknown L:unknown          | probe | refused
resolve done                     | dead unknown L:unknown/settled      |       | refused
resolve done                     | done repeatable                     |       | refused

replay                           | dead repeatable f4 l1 L:failed      |       | retryable (replayed) +0s; close replayed by ops
replay                           | dead l3 L:failed                    |       | retryable (replayed) +0s; close replayed by ops
replay                           | dead not_done f4 L:failed           |       | retryable (replayed) +0s; close replayed by ops
replay                           | dead refused L:failed               |       | retryable (replayed) +0s; effect not_done@2; close replayed by ops
replay                           | dead refused@2 L:failed             |       | retryable (replayed) +0s; effect not_done@3; close replayed by ops
replay                           | dead unknown L:unknown              | probe | refused
replay                           | dead refused L:failed/dismissed     |       | refused
replay                           | dead refused L:failed/replayed      |       | refused
replay                           | dead refused L:failed/compensated   |       | refused
replay                           | retry not_done                      |       | refused
replay                           | cancelled repeatable                |       | refused
replay                           | done repeatable                     |       | refused

dismiss                          | dead repeatable f4 L:failed         |       | dead (dismissed) f4; close dismissed by ops
dismiss                          | dead refused L:failed               |       | dead (dismissed); close dismissed by ops
dismiss                          | dead unknown L:unknown              |       | refused
dismiss                          | dead refused L:failed/dismissed     |       | refused
dismiss                          | settling unknown L:unknown          |       | refused
dismiss                          | retry not_done                      |       | refused

cancel                           | scheduled repeatable                |       | cancelled
cancel                           | scheduled once                      |       | cancelled
cancel                           | retry repeatable f1                 |       | cancelled f1
cancel                           | lost repeatable l1                  |       | cancelled l1
cancel                           | retry not_done f1                   |       | cancelled f1
cancel                           | scheduled repeatable again          |       | done keep
cancel                           | retry repeatable again              |       | done keep
cancel                           | settling unknown                    | probe | refused
cancel                           | retry unknown f1                    |       | refused
cancel                           | lost unknown l1                     |       | refused
cancel                           | lost begun l1                       |       | refused
cancel                           | running repeatable                  |       | refused
cancel                           | done repeatable                     |       | refused
cancel                           | dead repeatable L:failed            |       | refused
cancel                           | cancelled repeatable                |       | refused

reopen                           | cancelled repeatable f2 l2          |       | scheduled (reopened) +0s
reopen                           | cancelled not_done                  |       | scheduled (reopened) +0s
reopen                           | cancelled refused                   |       | scheduled (reopened) +0s; effect not_done@2
reopen                           | dead repeatable f4 L:failed/dismissed |     | dead f4; reopen failed; alert dead_letter
reopen                           | dead refused L:failed/dismissed     |       | dead; reopen failed; alert dead_letter
reopen                           | dead refused L:failed               |       | refused
reopen                           | dead refused L:failed/compensated   |       | refused
reopen                           | dead unknown L:unknown              |       | refused
reopen                           | done repeatable                     |       | refused
reopen                           | scheduled repeatable                |       | refused

again                            | done repeatable f2 l1               |       | scheduled (again) +0s again
run skipped                      | skipped repeatable                  |       | scheduled (run skipped) +0s
`

var moveOf = map[string]Move{"resolve": OnResolve, "replay": OnReplay, "dismiss": OnDismiss, "cancel": OnCancel, "reopen": OnReopen,
	"again": OnAgain, "run skipped": OnRunSkipped}

func TestActs(t *testing.T) {
	eachLine(t, acts, 4, func(t *testing.T, cells []string) {
		r, p := runFrom(t, cells[1]), policyFrom(t, cells[2])
		act, as, _ := strings.Cut(cells[0], " ")
		var m Transition
		var err error
		switch act {
		case "resolve":
			m, err = r.Resolve(Resolution(as), p, "ops", "looked", noon)
		case "replay":
			m, err = r.Replay("ops", "looked", noon)
		case "dismiss":
			m, err = r.Dismiss("ops", "looked", noon)
		case "cancel":
			m, err = r.Cancel("ops", "looked", noon)
		case "reopen":
			m, err = r.Reopen("ops", "looked", noon)
		case "again":
			m = r.FurtherAttempt(noon)
		case "run":
			act, m = cells[0], r.RunSkipped(noon)
		}
		switch cells[3] {
		case "refused":
			if !errors.Is(err, Conflict("")) {
				t.Errorf("%s, %v: want a conflict", moveText(m), err)
			}
			return
		case "invalid":
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%s, %v", moveText(m), err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		compareMove(t, r, m, cells[3])
		if m.On != moveOf[act] {
			t.Errorf("on %q", m.On)
		}
		if a := m.Activity; act != "again" && act != "run skipped" &&
			(a == nil || a.Actor != "ops" || a.Note != "looked" || a.Key != r.Key || !strings.HasPrefix(a.Action, act) || a.Before != string(r.State)) {
			t.Errorf("activity %+v", m.Activity)
		}
		if m.Close != nil && m.Close.Note != "looked" {
			t.Errorf("closed with %q", m.Close.Note)
		}
	})
}

// Whether an effect may begin, and how it is marked.
const begins = `
once                             |                 | begun try1 first+0s
once not_done first-1h           |                 | begun try2 first-1h
once not_done@2 first-1h         |                 | begun@2 try2 first-1h
once renewed@2                   |                 | begun@2 try2 first+0s
once unknown first-1h            | remembers       | begun open try2 first-1h
once unknown open first-1h       | remembers       | begun open try2 first-1h
once unknown@2 first-22h59m59s   | remembers       | begun@2 open try2 first-22h59m59s
once unknown first-23h           | remembers       | no
once unknown first-999h          | forever         | begun open try2 first-999h
once unknown first-1h            |                 | no
once unknown first-1h            | probe           | no
once begun                       | forever         | no
once done-effect                 | forever         | no
`

func TestBegin(t *testing.T) {
	eachLine(t, begins, 3, func(t *testing.T, cells []string) {
		r := runFrom(t, cells[0])
		var before StepRecord
		if r.Effect != nil {
			before = *r.Effect
		}
		e, ok := r.Begin(policyFrom(t, cells[1]), noon)
		got := "no"
		if ok {
			got = fmt.Sprintf("%s try%d first%s", effectText(e), e.Tries, short(e.FirstAt.Sub(noon)))
			if e.Fence != r.Fence || !e.EndedAt.IsZero() || e.SettledBy != "" || e.Key != r.Key || e.Step != StepRun {
				t.Errorf("%+v", e)
			}
		}
		if got != cells[2] {
			t.Errorf("%s, want %s", got, cells[2])
		}
		if r.Effect != nil && !reflect.DeepEqual(*r.Effect, before) {
			t.Error("the run's own effect was written to")
		}
	})
}

// What follows when a claimed run may not begin: nothing was sent.
const unsettled = `
once done-effect                 |                 | done; effect done
once unknown f1                  | probe           | retryable (settling) +0s f1; effect unknown
once unknown f1                  | probe remembers | retryable (settling) +0s f1; effect unknown
once unknown f1                  |                 | dead f1; effect unknown; letter unknown; alert unknown_outcome
once unknown open f1 first-24h   | remembers       | dead f1; effect unknown open; letter unknown; alert unknown_outcome
once begun                       | probe           | retryable (settling) +0s; effect unknown
once begun                       |                 | dead; effect unknown; letter unknown; alert unknown_outcome
`

func TestUnsettled(t *testing.T) {
	eachLine(t, unsettled, 3, func(t *testing.T, cells []string) {
		r := runFrom(t, cells[0])
		m := r.Unsettled(policyFrom(t, cells[1]), noon)
		compareMove(t, r, m, cells[2])
		if m.On != OnReport || m.Effect.EndedAt.IsZero() {
			t.Errorf("on %q, effect %+v", m.On, m.Effect)
		}
	})
}

// runFrom makes a run of words. Its state is running, unless a word is a state or implies one.
func runFrom(t *testing.T, words string) *Run {
	t.Helper()
	r := &Run{Key: "renew:2026-10-26", Job: "renew", Priority: P0, Effects: Once, State: Running, Fence: 3, Claim: "c3", Attempts: 1,
		Due: noon.Add(-time.Minute), NotBefore: noon.Add(-time.Minute), CreatedAt: noon.Add(-time.Minute),
		ClaimedAt: noon.Add(-20 * time.Second), BegunAt: noon.Add(-10 * time.Second)}
	effect := func(s EffectState, generation int) {
		r.Effect = &StepRecord{Key: r.Key, Step: StepRun, State: s, Generation: generation, FirstAt: noon.Add(-10 * time.Minute), Tries: 1, Fence: 3}
		if s != EffectBegun {
			r.Effect.EndedAt = noon.Add(-5 * time.Minute)
		}
	}
	for word := range strings.FieldsSeq(words) {
		name, at, _ := strings.Cut(word, "@")
		generation := 1
		if at != "" {
			generation = number(t, at)
		}
		switch name {
		case "repeatable":
			r.Effects = Repeatable
		case "once":
		case "again":
			r.Again = true
		case "stop":
			r.CancelledBy = "ops"
		case "begun", "unknown", "not_done", "refused":
			effect(EffectState(name), generation)
		case "done-effect":
			effect(EffectDone, 1)
		case "renewed":
			effect(EffectNotDone, generation)
			r.Effect.FirstAt = time.Time{}
		case "open":
			r.Effect.Open = true
		case "older":
			r.Effect.Fence = 2
		case "retry":
			r.State, r.Reason = Retryable, ReasonRetry
		case "lost":
			r.State, r.Reason = Retryable, ReasonLost
		case "replayed":
			r.State, r.Reason = Retryable, ReasonReplayed
		case "settling":
			r.State, r.Reason, r.Asking = Retryable, ReasonSettling, "q1"
		default:
			switch {
			case slices.Contains(States, State(name)):
				r.State = State(name)
			case strings.HasPrefix(name, "L:"):
				kind, state, _ := strings.Cut(name[2:], "/")
				r.Letter = &Letter{ID: "l1", Key: r.Key, Job: r.Job, Kind: LetterKind(kind), State: LetterOpen, Error: "before", OpenedAt: noon.Add(-time.Hour)}
				if state != "" {
					r.Letter.State, r.Letter.ClosedAt, r.Letter.ClosedBy = LetterState(state), noon, "somebody"
				}
			case strings.HasPrefix(name, "first-"):
				r.Effect.FirstAt = noon.Add(-duration(t, name[6:]))
			case strings.HasPrefix(name, "ended-"):
				r.Effect.EndedAt = noon.Add(-duration(t, name[6:]))
			case strings.HasPrefix(name, "due-"):
				r.NotBefore = noon.Add(-duration(t, name[4:]))
				r.CreatedAt = r.NotBefore
			case strings.HasPrefix(name, "made-"):
				r.CreatedAt = noon.Add(-duration(t, name[5:]))
			case strings.HasPrefix(name, "try"):
				r.Attempts = number(t, name[3:])
			case name[0] == 'f':
				r.Failures = number(t, name[1:])
			case name[0] == 'l':
				r.Losses = number(t, name[1:])
			default:
				t.Fatalf("unknown word %q", word)
			}
		}
	}
	return r
}

func policyFrom(t *testing.T, words string) Policy {
	t.Helper()
	p := Policy{Retry: Retry{Backoff: DefaultBackoff, Jitter: -1}, Settles: DefaultSettles}
	for word := range strings.FieldsSeq(words) {
		switch word {
		case "probe":
			p.Asks = true
		case "remembers":
			p.Remembers = 24 * time.Hour
		case "forever":
			p.Remembers = Forever
		case "no-ladder":
			p.Retry.Backoff = []time.Duration{}
		default:
			t.Fatalf("unknown word %q", word)
		}
	}
	return p
}

func outcomeFrom(t *testing.T, words string) Outcome {
	t.Helper()
	result, rest, _ := strings.Cut(words, " ")
	o := Outcome{Result: Result(result)}
	if o.Result != ResultDone && o.Result != ResultLost {
		o.Error = "said " + result
	}
	if rest == "cut" {
		o.Interrupted = true
	} else if rest != "" {
		o.RetryAfter = duration(t, strings.TrimPrefix(rest, "+"))
	}
	return o
}

// moveText writes a transition as the tables have it.
func moveText(m Transition) string {
	parts := []string{string(m.To)}
	add := func(format string, args ...any) { parts[len(parts)-1] += fmt.Sprintf(format, args...) }
	if m.Reason != "" {
		add(" (%s)", m.Reason)
	}
	if m.To.Live() {
		add(" %s", short(m.Due.Sub(noon)))
	}
	if m.Failures != 0 {
		add(" f%d", m.Failures)
	}
	if m.Losses != 0 {
		add(" l%d", m.Losses)
	}
	if m.Again {
		add(" again")
	}
	if m.Keep {
		add(" keep")
	}
	if e := m.Effect; e != nil {
		parts = append(parts, "effect "+effectText(e))
		if e.SettledBy != "" {
			add(" by %s", e.SettledBy)
		}
	}
	if l := m.Letter; l != nil && l.ID == "" {
		parts = append(parts, "letter "+string(l.Kind))
	} else if l != nil {
		parts = append(parts, "reopen "+string(l.Kind))
	}
	if l := m.Close; l != nil {
		parts = append(parts, "close "+string(l.State)+" by "+l.ClosedBy)
	}
	for _, a := range m.Alerts {
		parts = append(parts, "alert "+string(a.Kind))
	}
	return strings.Join(parts, "; ")
}

func effectText(e *StepRecord) string {
	text := string(e.State)
	if e.Generation != 1 {
		text += "@" + strconv.Itoa(e.Generation)
	}
	if e.Open {
		text += " open"
	}
	return text
}

// short writes a duration with its sign and without the units that are zero.
func short(d time.Duration) string {
	sign := "+"
	if d < 0 {
		sign, d = "-", -d
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return sign + s
}

func compareMove(t *testing.T, r *Run, m Transition, want string) {
	t.Helper()
	if got := moveText(m); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, fault := range moveFaults(r, m) {
		t.Error(fault)
	}
}

// moveFaults returns what no transition may be.
func moveFaults(r *Run, m Transition) (faults []string) {
	bad := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if !slices.Contains(Arrows, Arrow{From: m.From, On: m.On, To: m.To}) {
		bad("the arrow %s on %s to %s is not in Arrows", m.From, m.On, m.To)
	}
	if m.Key != r.Key || m.From != r.State || m.Fence != r.Fence || m.Claim != r.Claim || m.Asking != r.Asking || m.At.IsZero() {
		bad("it is not compared with the run it was made of: %+v", m)
	}
	if m.To.Live() && m.Due.IsZero() {
		bad("live and never due")
	}
	if l := m.Letter; (m.To == Dead && m.On != OnDismiss && m.On != OnUndo && m.On != OnUndone) != (l != nil) {
		bad("a letter is opened when a run dies, and then only: %+v", l)
	} else if l != nil {
		kind := AlertDeadLetter
		if l.Kind == LetterUnknown {
			kind = AlertUnknownOutcome
		}
		if m.On == OnSubjects && (m.Reason == ReasonBreaker || m.Reason == ReasonNextZone) {
			kind = AlertBreakerOpen
		}
		if !slices.ContainsFunc(m.Alerts, func(a *Alert) bool { return a.Kind == kind && a.Key == r.Key && a.LastError != "" }) {
			bad("a letter of kind %s without its alert", l.Kind)
		}
		if l.State != LetterOpen || l.Error == "" || l.Key != r.Key || l.Job != r.Job || l.OpenedAt.IsZero() || !l.ClosedAt.IsZero() || l.ClosedBy != "" {
			bad("letter %+v", l)
		}
		if open := after(r, m); l.Kind != LetterUnknown && open != nil && (open.State == EffectUnknown || open.State == EffectBegun) {
			bad("a letter of kind %s while the effect is %s", l.Kind, open.State)
		}
	}
	if m.Close != nil && (r.Letter == nil || r.Letter.State != LetterOpen || m.Close.ID != r.Letter.ID || m.Close.ClosedBy == "" || m.Close.ClosedAt.IsZero()) {
		bad("it closes %+v of %+v", m.Close, r.Letter)
	}
	open := r.Letter != nil && r.Letter.State == LetterOpen && m.Close == nil && m.Letter == nil
	if open && m.To != Dead && m.Reason != ReasonSettling {
		bad("%s (%s) with an open letter", m.To, m.Reason)
	}
	if e := after(r, m); e != nil {
		if m.To == Done && e.State != EffectDone && !m.Keep {
			bad("done with an effect that is %s", e.State)
		}
		if m.To == Cancelled && (e.State == EffectUnknown || e.State == EffectBegun || e.State == EffectDone) {
			bad("cancelled with an effect that is %s", e.State)
		}
		if e.State == EffectUnknown && e.EndedAt.IsZero() {
			bad("unknown since never")
		}
		if r.Effect != nil && e.Generation > r.Effect.Generation {
			refused := r.Effect.State == EffectRefused && (m.On == OnReplay || m.On == OnReopen)
			if e.Generation != r.Effect.Generation+1 || e.Open || !e.FirstAt.IsZero() || !refused && m.On != OnProbe && m.On != OnResolve {
				bad("the wire key rose from %d to %d on %s", r.Effect.Generation, e.Generation, m.On)
			}
		}
	}
	return faults
}

// after returns the effect as it stands when m was applied.
func after(r *Run, m Transition) *StepRecord {
	if m.Effect != nil {
		return m.Effect
	}
	return r.Effect
}

// Every arrow is taken by one of the functions, and no other: all runs that may exist, all that may happen to them.
// The arrows of claim and cover are the store's.
func TestArrows(t *testing.T) {
	taken := map[Arrow]bool{}
	take := func(r *Run, m Transition) {
		t.Helper()
		for _, fault := range moveFaults(r, m) {
			t.Errorf("%s on %s: %s: %s", m.From, m.On, moveText(m), fault)
		}
		taken[Arrow{From: m.From, On: m.On, To: m.To}] = true
	}
	results := []string{"done", "not_done", "permanent", "unclear", "busy", "unknown", "lost", "interrupted", "not_done cut"}
	effects := []string{"repeatable", "repeatable again", "once", "begun", "begun open", "unknown", "unknown open", "not_done", "refused"}
	letters := []string{"", "L:failed", "L:unknown", "L:failed/dismissed", "L:failed/compensated"}
	for _, effect := range effects {
		for _, counts := range []string{"", "f3 l2 try2"} {
			for _, words := range []string{"", "probe", "remembers", "probe remembers"} {
				p := policyFrom(t, words)
				for _, stop := range []string{"", " stop"} {
					for _, result := range results {
						r := runFrom(t, "running "+effect+" "+counts+stop)
						take(r, r.Next(outcomeFrom(t, result), p, noon))
						for _, from := range []string{"retry", "settling", "dead"} {
							for _, letter := range letters {
								if (from == "retry" || from == "settling" && stop != "") && letter != "" || from == "settling" && !strings.Contains(effect, "unknown") ||
									strings.Contains(effect, "unknown") && letter == "L:failed" {
									continue
								}
								late := runFrom(t, from+" "+effect+" "+counts+" "+letter)
								if from == "settling" {
									late.CancelledBy = r.CancelledBy
								}
								if m, ok := late.Late(outcomeFrom(t, result), p, noon); ok {
									take(late, m)
								}
							}
						}
					}
					if strings.Contains(effect, "unknown") {
						r := runFrom(t, "settling "+effect+" "+counts+stop)
						for _, answer := range []Answer{Yes, No, CannotTell} {
							take(r, r.Settle([]Finding{{Answer: answer, WireKey: r.WireKey()}}, p, noon, noon))
						}
					}
				}
				for _, state := range States {
					for _, letter := range letters {
						if (state == Dead) != (letter != "") || letter == "L:failed" && strings.Contains(effect, "unknown") {
							continue
						}
						r := runFrom(t, string(state)+" "+effect+" "+counts+" "+letter)
						for _, act := range []func() (Transition, error){
							func() (Transition, error) { return r.Resolve(AsDone, p, "ops", "", noon) },
							func() (Transition, error) { return r.Resolve(AsNotDone, p, "ops", "", noon) },
							func() (Transition, error) { return r.Resolve(AsAsk, p, "ops", "", noon) },
							func() (Transition, error) { return r.Replay("ops", "", noon) },
							func() (Transition, error) { return r.Dismiss("ops", "", noon) },
							func() (Transition, error) { return r.Cancel("ops", "", noon) },
							func() (Transition, error) { return r.Reopen("ops", "", noon) },
						} {
							if m, err := act(); err == nil {
								take(r, m)
							} else if CodeOf(err) != CodeConflict {
								t.Error(err)
							}
						}
					}
				}
			}
		}
	}
	again := runFrom(t, "done repeatable")
	take(again, again.FurtherAttempt(noon))
	skipped := runFrom(t, "skipped repeatable")
	take(skipped, skipped.RunSkipped(noon))
	for _, words := range []string{"done begun", "dead begun L:failed"} {
		r := runFrom(t, words)
		r.Effect.State = EffectDone
		m, err := r.Undo("ops", "", noon)
		if err != nil {
			t.Error(err)
			continue
		}
		take(r, m)
		take(r, r.Undone("ops", noon))
	}
	for _, words := range []string{"scheduled", "retryable", "retryable not_done"} {
		for _, policy := range []string{"", "probe", "remembers"} {
			r := runFrom(t, words)
			r.Doubts = []*Lapse{{Number: 1, Since: noon.Add(-time.Hour), FoundAt: noon}}
			if m, ok := r.Question(policyFrom(t, policy), noon); ok {
				take(r, m)
			}
		}
	}
	two := runFrom(t, "dead repeatable L:unknown")
	two.Steps = true
	for i, name := range stepNames {
		two.Records = append(two.Records, &StepRecord{Key: two.Key, Step: name, State: EffectUnknown, Generation: 1, Order: i + 1, Tries: 1})
	}
	if m, err := two.ResolveStep("charge", AsDone, Policy{}, "ops", "", noon); err != nil {
		t.Error(err)
	} else {
		take(two, m)
	}

	for _, words := range []string{"scheduled repeatable", "retry repeatable"} {
		r := runFrom(t, words)
		r.Steps, r.Records = true, []*StepRecord{{Key: r.Key, Step: "charge", State: EffectDone, Generation: 1, Order: 1, Tries: 1}}
		m, err := r.Cancel("ops", "", noon)
		if err != nil {
			t.Fatal(err)
		}
		take(r, m)
	}

	for _, words := range []string{"scheduled not_done", "cancelled not_done", "dead not_done L:failed"} {
		r := runFrom(t, words)
		if r.Attempts = 1; r.Letter != nil {
			r.Letter.State = LetterDismissed
		}
		for _, steps := range []bool{false, true} {
			if r.Steps = steps; steps {
				r.Records, r.Effect = []*StepRecord{{Key: r.Key, Step: "charge", State: EffectNotDone, Generation: 1, Order: 1, Tries: 1, FirstAt: noon}}, nil
			}
			m, ok := r.LateBefore(1, r.WireKey(), Outcome{Result: ResultDone}, noon)
			if steps {
				m, ok = r.LateStepBefore(StepEnd{Step: "charge", WireKey: r.Key.WireKey("charge", 1), Outcome: Outcome{Result: ResultDone}}, Policy{}, noon)
			}
			if !ok {
				t.Fatalf("%s, steps %v: not taken", words, steps)
			}
			take(r, m)
		}
	}
	for _, m := range fanoutMoves(t) {
		take(m.run, m.Transition)
	}

	seen := map[Arrow]bool{}
	for _, a := range Arrows {
		if seen[a] {
			t.Errorf("%v stands in Arrows twice", a)
		}
		seen[a] = true
		if store := a.On == OnClaim || a.On == OnCover; taken[a] == store {
			t.Errorf("%v is taken: %v", a, taken[a])
		}
	}
}
