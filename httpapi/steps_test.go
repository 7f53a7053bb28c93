package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store/storetest"
)

func steps(j *daybook.Job) { j.Steps = true }

// step is what an endpoint was answered about a step.
type step struct {
	State   daybook.EffectState
	WireKey string `json:"wire_key"`
	Result  json.RawMessage
	Message string
	Ask     []string
}

// api calls the door in the name of an attempt.
type api struct {
	t     testing.TB
	url   string
	token string
}

func (a api) post(path string, body any) got {
	a.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		a.t.Fatal(err)
	}
	return call(a.t, "POST", a.url+"/api/v1/steps/"+path, string(b), "Daybook-Token", a.token)
}

func (a api) step(path string, body any) step {
	a.t.Helper()
	var s step
	if err := json.Unmarshal([]byte(a.post(path, body).is(a.t, 200).text), &s); err != nil {
		a.t.Fatal(err)
	}
	return s
}

type doc map[string]any

// An endpoint marks a charge and a receipt. Its first attempt fails between them, and the second gets the charge back.
func TestStepsOfAnHTTPJob(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		var d *door
		var mu sync.Mutex
		var book, back []string
		f := newFarSide(t, func(_ *farSide, w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if r.Header.Get("Idempotency-Key") != "" {
				t.Error("work with steps has no wire key of its own")
			}
			a := api{t, d.url, r.Header.Get("Daybook-Token")}
			for _, name := range []string{"charge", "receipt"} {
				s := a.step("begin", doc{"key": r.Header.Get("Daybook-Key"), "step": name, "effect": true})
				if s.State == daybook.EffectDone {
					back = append(back, string(s.Result))
					continue
				}
				book = append(book, s.WireKey)
				end := doc{"step": name, "effect": true, "result": doc{"id": len(book)}}
				a.step("end", end)
				if again := a.step("end", end); again.State != daybook.EffectDone { // its answer was lost
					t.Errorf("told twice: %+v", again)
				}
				if len(book) == 1 {
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
			}
		})
		d = serve(t, db.Fresh(t), oneSlot, httpJob(f, daybook.Once, steps))
		d.trigger("renew", "2026-03-02")
		r := d.ends(renewed, daybook.Done)
		mu.Lock()
		defer mu.Unlock()
		if got := fmt.Sprint(book, back); got != `[renew:2026-03-02#charge renew:2026-03-02#receipt] [{"id":1}]` {
			t.Error(got)
		}
		if r.Attempts != 2 || len(r.Records) != 2 {
			t.Errorf("%d attempts, %d steps", r.Attempts, len(r.Records))
		}
	})
}

// An effect that was begun and whose end nobody told is settled first, whatever the endpoint answers.
func TestAStepThatNobodyEnded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		var d *door
		f := newFarSide(t, func(f *farSide, w http.ResponseWriter, r *http.Request) {
			a := api{t, d.url, r.Header.Get("Daybook-Token")}
			if s := a.step("begin", doc{"step": "charge", "effect": true}); s.State != daybook.EffectBegun || s.WireKey != "renew:2026-03-02#charge" {
				t.Errorf("%+v", s)
			}
			a.post("begin", doc{"step": "charge", "effect": true}).is(t, 409) // somebody is at it
		})
		d = serve(t, db.Fresh(t), oneSlot, httpJob(f, daybook.Once, steps))
		d.trigger("renew", "2026-03-02")
		r := d.ends(renewed, daybook.Dead)
		if r.Letter.Kind != daybook.LetterUnknown || r.StepRecord("charge").State != daybook.EffectUnknown {
			t.Errorf("letter %s, %+v", r.Letter.Kind, r.StepRecord("charge"))
		}
		// Its end comes late, settles it, and lets the run go on; a second one has nothing to settle.
		f.answer = func(_ *farSide, w http.ResponseWriter, r *http.Request) {
			if s := (api{t, d.url, r.Header.Get("Daybook-Token")}).step("begin", doc{"step": "charge", "effect": true}); s.State != daybook.EffectDone {
				t.Errorf("%+v", s)
			}
		}
		a := api{t, d.url, f.order(1).token}
		if s := a.step("end", doc{"step": "charge", "effect": true, "result": 7}); s.State != daybook.EffectDone {
			t.Errorf("%+v", s)
		}
		d.ends(renewed, daybook.Done)
		a.post("end", doc{"step": "charge", "effect": true, "outcome": "permanent"}).is(t, 409)
		a.post("begin", doc{"step": "receipt", "effect": true}).is(t, 409)
	})
}

// What the caller found out itself settles an open effect: yes hands it back, an early no waits.
func TestAStepThatTheCallerAsksFor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		var d *door
		begun := false
		f := newFarSide(t, func(_ *farSide, w http.ResponseWriter, r *http.Request) {
			a := api{t, d.url, r.Header.Get("Daybook-Token")}
			s := a.step("begin", doc{"step": "charge", "effect": true, "asks": true, "settles": "1h"})
			if !begun {
				begun = true
				w.WriteHeader(http.StatusGatewayTimeout)
				return
			}
			if s.State != daybook.EffectUnknown || len(s.Ask) != 1 {
				t.Errorf("%+v", s)
			}
			said := func(answer string) doc {
				return doc{"step": "charge", "asked_at": time.Now(), "answers": []doc{{"wire_key": s.Ask[0], "answer": answer, "result": "ch_1"}}}
			}
			if g := a.post("found", said("maybe")).is(t, 400); !strings.Contains(g.text, "not one of yes, no, cannot_tell") {
				t.Error(g.text)
			}
			if no := a.step("found", said("no")); no.State != daybook.EffectUnknown || !strings.Contains(no.Message, "a no counts from") {
				t.Errorf("%+v", no)
			}
			if yes := a.step("found", said("yes")); yes.State != daybook.EffectDone || string(yes.Result) != `"ch_1"` {
				t.Errorf("%+v", yes)
			}
		})
		d = serve(t, db.Fresh(t), oneSlot, httpJob(f, daybook.Once, steps))
		d.trigger("renew", "2026-03-02")
		if r := d.ends(renewed, daybook.Done); r.StepRecord("charge").SettledBy != "probe" {
			t.Errorf("%+v", r.StepRecord("charge"))
		}
	})
}

// What was said once is not said again when it is not so any more: the right to begin is given once, and a far side that is
// asked too early, by a clock that is ahead or about something else, has not said no.
func TestAStepIsBegunOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		f := newFarSide(t, accepts)
		d := serve(t, db.Fresh(t), oneSlot, httpJob(f, daybook.Once, steps))
		d.trigger("renew", "2026-03-02")
		a := api{t, d.url, f.order(1).token}
		begin := func() got {
			return call(t, "POST", d.url+"/api/v1/steps/begin", `{"step":"charge","effect":true}`, "Daybook-Token", a.token, "Idempotency-Key", "one")
		}
		if g := begin().is(t, 200); g.field("state") != "begun" {
			t.Error(g.text)
		}
		begin().is(t, 409)
		a.step("end", doc{"step": "charge", "effect": true})
		if g := begin().is(t, 409); g.field("code") != "conflict" || !strings.Contains(g.text, "effect charge was done in this very attempt") {
			t.Error(g.text)
		}
		a.step("begin", doc{"step": "mail", "effect": true, "asks": true, "settles": "1h"})
		s := a.step("end", doc{"step": "mail", "effect": true, "outcome": "unknown"})
		found := func(key string) doc {
			return doc{"step": "mail", "asked_at": time.Now().Add(2 * time.Hour), "answers": []doc{{"wire_key": key, "answer": "no"}}}
		}
		a.post("found", found("another")).is(t, 400)
		if no := a.step("found", found(s.WireKey)); no.State != daybook.EffectUnknown || no.WireKey != s.WireKey {
			t.Errorf("%+v", no)
		}
	})
}

func TestStepsThatCannotBe(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		f := newFarSide(t, accepts)
		d := serve(t, db.Fresh(t), oneSlot, httpJob(f, daybook.Once, steps), httpJob(f, daybook.Once, func(j *daybook.Job) { j.Name = "plain" }))
		d.trigger("renew", "2026-03-02")
		a := api{t, d.url, f.order(1).token}
		for _, c := range []struct {
			path   string
			body   doc
			status int
			text   string
		}{
			{"begin", doc{"step": "Charge!"}, 400, "cannot be the name of a step"},
			{"begin", doc{"step": "run"}, 400, "the name of a whole attempt"},
			{"begin", doc{"step": "charge", "efect": true}, 400, `did you mean \"effect\"?`},
			{"begin", doc{"step": "charge", "effect": true, "remembers": "a day"}, 400, "is not a duration"},
			{"begin", doc{"step": "charge", "key": "renew:2026-03-03"}, 403, "not one of renew:2026-03-03"},
			{"end", doc{"step": "charge", "effect": true}, 409, "not under way"},
			{"end", doc{"step": "charge", "outcome": "perhaps"}, 400, "is no outcome"},
			{"found", doc{"step": "charge", "answers": []doc{}}, 400, "asked_at"},
			{"found", doc{"step": "charge", "asked_at": noon, "answers": []doc{}}, 409, "nothing to ask"},
		} {
			if g := a.post(c.path, c.body).is(t, c.status); !strings.Contains(g.text, c.text) {
				t.Errorf("%s %v: %s, want %s", c.path, c.body, g.text, c.text)
			}
		}
		a.post("begin", doc{"step": "charge", "effect": true}).is(t, 200)
		if g := a.post("end", doc{"step": "charge", "effect": true, "try": 2, "outcome": "not_done"}).is(t, 409); !strings.Contains(g.text, "not under way") {
			t.Error(g.text)
		}
		a.token = "dba_nonsense"
		a.post("begin", doc{"step": "charge"}).is(t, 403)
		a.token = ""
		a.post("begin", doc{"step": "charge"}).is(t, 401)
		f.report(f.order(1), "{}")
		d.trigger("plain", "2026-03-02")
		a.token = f.order(2).token
		if g := a.post("begin", doc{"step": "charge", "effect": true}); g.status != 409 && g.status != 422 || !strings.Contains(g.text, "did not declare steps") {
			t.Errorf("%d %s", g.status, g.text)
		}
	})
}

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
