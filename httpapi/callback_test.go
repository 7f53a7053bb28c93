package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/store/storetest"
)

// farSide is an operator's service that answers as it is told and remembers where it may report.
type farSide struct {
	t      testing.TB
	url    string
	answer func(f *farSide, w http.ResponseWriter, r *http.Request)

	mu     sync.Mutex
	orders []order // as they came
}

// order is one request, with where to report.
type order struct{ callback, token, wireKey string }

func newFarSide(t testing.TB, answer func(f *farSide, w http.ResponseWriter, r *http.Request)) *farSide {
	t.Helper()
	f := &farSide{t: t, answer: answer}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.orders = append(f.orders, order{r.Header.Get("Daybook-Callback"), r.Header.Get("Daybook-Token"), r.Header.Get("Idempotency-Key")})
		f.mu.Unlock()
		f.answer(f, w, r)
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func accepts(_ *farSide, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }

// order waits for the nth order.
func (f *farSide) order(n int) order {
	f.t.Helper()
	var o order
	until(f.t, fmt.Sprintf("order %d", n), func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.orders) < n {
			return false
		}
		o = f.orders[n-1]
		return true
	})
	return o
}

func (f *farSide) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.orders)
}

// report reports to a callback.
func (f *farSide) report(o order, body string) got {
	f.t.Helper()
	return call(f.t, "POST", o.callback, body, "Daybook-Token", o.token)
}

// httpJob is a job of the far side.
func httpJob(f *farSide, effects daybook.Effects, change ...func(*daybook.Job)) daybook.Job {
	j := daybook.Job{Name: "renew", Owner: "ops", Timezone: "UTC", Window: daybook.Day, Effects: effects, Settles: time.Millisecond,
		HTTP: &daybook.HTTPCall{URL: f.url + "/jobs/renew"}, Retry: daybook.Retry{Backoff: []time.Duration{time.Millisecond}, Jitter: -1}}
	for _, c := range change {
		c(&j)
	}
	return j
}

const renewed = daybook.Key("renew:2026-03-02")

func TestCallbacks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		for name, c := range map[string]struct {
			report string
			status int
			state  daybook.State
			result daybook.Result // of the attempt
			text   string         // in the answer
		}{
			"nothing more than done": {"", 200, daybook.Done, daybook.ResultDone, `"outcome":"done"`},
			"an empty object":        {"{}", 200, daybook.Done, daybook.ResultDone, `"state":"done"`},
			"done, with a result":    {`{"outcome":"done","effects":{"charges":20},"result":{"id":"ch_1"}}`, 200, daybook.Done, daybook.ResultDone, `"id":"ch_1"`},
			"permanent":              {`{"outcome":"permanent","message":"card declined"}`, 200, daybook.Dead, daybook.ResultPermanent, "card declined"},
			"unclear":                {`{"outcome":"unclear","message":"timed out at the bank"}`, 200, daybook.Dead, daybook.ResultUnclear, `"kind":"unknown"`},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := newFarSide(t, accepts)
				d := serve(t, db.Fresh(t), oneSlot, httpJob(f, daybook.Once))
				d.trigger("renew", "2026-03-02")
				o := f.order(1)
				if o.callback != d.url+"/api/v1/callbacks/renew:2026-03-02" || o.wireKey != string(renewed) {
					t.Errorf("ordered %+v", o)
				}
				if g := f.report(o, c.report).is(t, c.status); !strings.Contains(g.text, c.text) {
					t.Errorf("answered %s, want %s in it", g.text, c.text)
				}
				r := d.run(renewed) // what was answered is in the ledger
				if r.State != c.state {
					t.Fatalf("%s %s", r.State, r.LastError)
				}
				d.slotIsBack(f)
				tries := d.tries(renewed)
				if len(tries) != 1 || tries[0].Result != c.result || tries[0].LateResult != "" || f.count() != 2 {
					t.Errorf("%d orders, tries %+v", f.count(), tries)
				}
				// A token is used up by the report that was taken.
				for _, again := range []string{c.report, `{"outcome":"unknown"}`} {
					if g := f.report(o, again).is(t, 409); g.field("key") != string(renewed) {
						t.Errorf("answered %s", g.text)
					}
				}
				if after := d.run(renewed); after.State != r.State || after.Fence != r.Fence {
					t.Errorf("a second report made it %s", after.State)
				}
				if tries := d.tries(renewed); tries[0].LateResult != daybook.ResultUnknown || tries[0].LateTaken {
					t.Errorf("what else was said is not kept: %+v", tries[0])
				}
			})
		}
	})
}

// oneSlot lets one run at a time be done.
var oneSlot = engine.Options{Slots: map[daybook.Lane]int{daybook.LaneLive: 1}}

// slotIsBack waits until the only slot of a process takes another window.
func (d *door) slotIsBack(f *farSide) {
	d.t.Helper()
	n := f.count()
	d.trigger("renew", "2026-03-03")
	f.order(n + 1)
}

// A report may overtake the answer, whatever the answer is, and may be made while the far side does not answer yet.
func TestAReportThatOvertakesTheAnswer(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		for name, c := range map[string]struct {
			answer   func(w http.ResponseWriter)
			evidence daybook.Result
		}{
			"202":     {func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) }, ""},
			"200":     {func(http.ResponseWriter) {}, ""},
			"cut off": {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, ""},
			"402":     {func(w http.ResponseWriter) { w.WriteHeader(http.StatusPaymentRequired) }, daybook.ResultPermanent},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := newFarSide(t, func(f *farSide, w http.ResponseWriter, r *http.Request) {
					o := order{r.Header.Get("Daybook-Callback"), r.Header.Get("Daybook-Token"), ""}
					if g := f.report(o, `{"outcome":"done","result":1}`); g.status != 200 {
						f.t.Errorf("reported before the answer: %d %s", g.status, g.text)
					}
					c.answer(w)
				})
				d := serve(t, db.Fresh(t), oneSlot, httpJob(f, daybook.Once))
				d.trigger("renew", "2026-03-02")
				r := d.ends(renewed, daybook.Done)
				d.slotIsBack(f)
				tries := d.tries(renewed)
				if len(tries) != 1 || tries[0].Result != daybook.ResultDone || tries[0].LateResult != c.evidence || string(r.Result) != "1" || f.count() != 2 {
					t.Errorf("%d orders, result %s, tries %+v", f.count(), r.Result, tries)
				}
			})
		}
	})
}

// Nobody reports: at the timeout the outcome is unknown; a report that comes later settles it.
func TestNoReportUntilTheTimeout(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		f := newFarSide(t, accepts)
		d := serve(t, db, engine.Options{}, httpJob(f, daybook.Once, func(j *daybook.Job) { j.Timeout = 300 * time.Millisecond }))
		d.trigger("renew", "2026-03-02")
		r := d.ends(renewed, daybook.Dead)
		if r.Letter.Kind != daybook.LetterUnknown || !strings.Contains(r.LastError, "no report came to the callback") {
			t.Errorf("letter %+v: %s", r.Letter, r.LastError)
		}
		if g := f.report(f.order(1), `{"outcome":"done","result":{"id":"ch_1"}}`).is(t, 200); g.field("late") != "true" {
			t.Errorf("answered %s", g.text)
		}
		if r := d.run(renewed); r.State != daybook.Done || string(r.Result) != `{"id":"ch_1"}` || r.Letter.State != daybook.LetterSettled {
			t.Errorf("%s, result %s, letter %+v", r.State, r.Result, r.Letter)
		}
		if f.count() != 1 {
			t.Errorf("%d orders", f.count())
		}
	})
}

// The process is killed while the far side works. Its report counts on the next process: before the lease is over as the
// end, after it as a late report.
func TestAReportAfterARestart(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		for name, late := range map[string]bool{"within the lease": false, "after the lease": true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				db := db.Fresh(t)
				f := newFarSide(t, accepts)
				lease := time.Hour
				if late {
					lease = 2 * time.Second
				}
				killed, kill := context.WithCancel(t.Context())
				d := open(t, db, engine.Options{Lease: lease}, httpJob(f, daybook.Once))
				ended := make(chan struct{})
				d.trigger("renew", "2026-03-02")
				go func() { defer close(ended); _ = d.RunDue(killed) }()
				o := f.order(1)
				kill()
				<-ended
				next := serve(t, db, engine.Options{Lease: lease}, httpJob(f, daybook.Once))
				if late {
					next.ends(renewed, daybook.Dead)
				}
				o.callback = strings.Replace(o.callback, d.url, next.url, 1)
				if g := f.report(o, `{"outcome":"done"}`).is(t, 200); (g.field("late") == "true") != late {
					t.Errorf("answered %s", g.text)
				}
				if r := next.run(renewed); r.State != daybook.Done || r.Attempts != 1 || f.count() != 1 {
					t.Errorf("%s after %d attempts, %d orders", r.State, r.Attempts, f.count())
				}
			})
		}
	})
}

// Two machines share a ledger: whichever hears the report, the one that waits for it has its slot back.
func TestAReportToAnotherNode(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		f := newFarSide(t, accepts)
		first := serve(t, db, oneSlot, httpJob(f, daybook.Once))
		other := open(t, db, engine.Options{}, httpJob(f, daybook.Once))
		first.trigger("renew", "2026-03-02")
		o := f.order(1)
		o.callback = strings.Replace(o.callback, first.url, other.url, 1)
		f.report(o, "").is(t, 200)
		first.slotIsBack(f)
		if tries := first.tries(renewed); len(tries) != 1 || tries[0].Result != daybook.ResultDone || tries[0].LateResult != "" {
			t.Errorf("tries %+v", tries)
		}
	})
}

// A report of an earlier attempt changes nothing once a later one has begun.
func TestAStaleReport(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		f := newFarSide(t, accepts)
		d := serve(t, db, engine.Options{}, httpJob(f, daybook.Repeatable))
		d.trigger("renew", "2026-03-02")
		first := f.order(1)
		f.report(first, `{"outcome":"not_done","message":"busy"}`).is(t, 200)
		second := f.order(2)
		if g := f.report(first, `{"outcome":"done"}`).is(t, 409); !strings.Contains(g.field("detail"), "later attempt") {
			t.Errorf("answered %s", g.text)
		}
		if tries := d.tries(renewed); tries[0].LateResult != daybook.ResultDone || tries[0].LateTaken {
			t.Errorf("it is not kept as evidence: %+v", tries)
		}
		if r := d.run(renewed); r.State != daybook.Running {
			t.Errorf("it made the run %s", r.State)
		}
		f.report(second, "").is(t, 200)
		d.ends(renewed, daybook.Done)
	})
}

// Whoever has no token of the attempt, or says something that is no report, changes nothing.
func TestReportsThatAreNone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		f := newFarSide(t, accepts)
		d := serve(t, db, engine.Options{}, httpJob(f, daybook.Once))
		d.trigger("renew", "2026-03-02")
		o := f.order(1)
		call(t, "POST", o.callback, "").is(t, 401)
		call(t, "POST", o.callback, "", "Daybook-Token", o.token+"x").is(t, 403)
		call(t, "POST", o.callback, "", "Daybook-Token", o.token, "Daybook-Token", o.token).is(t, 403)
		call(t, "POST", o.callback, "", "Authorization", "Bearer "+o.token).is(t, 401)
		call(t, "POST", o.callback+"x", "", "Daybook-Token", o.token).is(t, 403)
		call(t, "GET", o.callback, "", "Daybook-Token", o.token).is(t, 405)
		call(t, "POST", o.callback, strings.Repeat(" ", 70<<10), "Daybook-Token", o.token).is(t, 413)
		call(t, "POST", o.callback, "", "Daybook-Token", o.token, "Origin", "http://evil.test").is(t, 403)
		for body, says := range map[string]string{
			`{"outcom":"done"}`:                      "outcome",
			`{"outcome":"Done"}`:                     "done",
			`{"outcome":"done","outcome":"unknown"}`: "twice",
			`{"outcome":"done"`:                      "cut off",
			`["done"]`:                               "not a JSON object",
			"\xff":                                   "JSON",
		} {
			if g := f.report(o, body).is(t, 400); !strings.Contains(g.text, says) {
				t.Errorf("%s: answered %s, want %q in it", body, g.text, says)
			}
		}
		if r := d.run(renewed); r.State != daybook.Running {
			t.Fatalf("the run is %s", r.State)
		}
		f.report(o, "").is(t, 200)
		d.ends(renewed, daybook.Done)
	})
}
