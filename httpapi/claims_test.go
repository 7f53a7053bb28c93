package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/store/storetest"
)

// hand is a clock moved by hand.
type hand struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// timed is a door whose clock is moved by hand. Nothing works but in pass.
type timed struct {
	*door
	clock *hand
}

func openTimed(t testing.TB, db storetest.Database, jobs ...daybook.Job) *timed {
	t.Helper()
	h := &hand{now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)}
	d := &timed{open(t, db, engine.Options{Now: h.Now, ByHand: true}, jobs...).as(daybook.RoleAct), h}
	d.pass(0)
	return d
}

// pass lets time go by, in steps shorter than a lease; whatever a serve does meanwhile is done.
func (d *timed) pass(span time.Duration) {
	d.t.Helper()
	for {
		if err := d.RunDue(d.t.Context()); err != nil {
			d.t.Fatal(err)
		}
		if span <= 0 {
			return
		}
		step := min(span, 10*time.Second)
		d.clock.mu.Lock()
		d.clock.now = d.clock.now.Add(step)
		d.clock.mu.Unlock()
		span -= step
	}
}

// claim claims, and wants an answer with a status.
func (d *door) claim(status int, body string, headers ...string) got {
	d.t.Helper()
	return d.call("POST", "/api/v1/claims", body, headers...).is(d.t, status)
}

// with makes a call with the token of an attempt.
func (d *door) with(claimed got, path, body string) got {
	d.t.Helper()
	return call(d.t, "POST", d.url+path, body, "Daybook-Token", claimed.field("token"))
}

func (d *door) end(claimed got, body string) got {
	d.t.Helper()
	return d.with(claimed, "/api/v1/claims/end", body)
}

func (d *door) renew(claimed got, body string) got {
	d.t.Helper()
	return d.with(claimed, "/api/v1/claims/renew", body)
}

const backup = daybook.Key("backup:2026-03-02")

// A program with a scheduler of its own does a window once, whoever asks again.
func TestALifeOfAClaim(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := openTimed(t, db)
		g := d.claim(201, `{"key":"backup:2026-03-02","timezone":"Europe/Berlin","effects":"once","lease":"30s","payload":{"disk":1},"holder":"host a"}`)
		for name, want := range map[string]string{"schema": "daybook/claim.v1", "outcome": "started", "key": string(backup), "fence": "1", "attempt": "1", "wire_key": string(backup),
			"lease_until": "2026-03-02T12:00:30Z", "payload": `{"disk":1}`, "timeout": "1h0m0s", "trigger": "api"} {
			if g.field(name) != want {
				t.Errorf("%s is %q, want %q", name, g.field(name), want)
			}
		}
		r := d.run(backup)
		if r.State != daybook.Running || r.Home != daybook.HomeOnce || r.Node != "host a" || r.Effect == nil || r.Effect.State != daybook.EffectBegun || r.Zone != "Europe/Berlin" || r.Window.Label != "2026-03-02" {
			t.Errorf("%+v, effect %+v", r, r.Effect)
		}
		joined := d.claim(202, `{"job":"backup","window":"2026-03-02"}`)
		if joined.field("outcome") != "joined" || joined.field("token") != "" {
			t.Errorf("answered %s", joined.text)
		}
		if g := d.claim(422, `{"job":"backup","window":"2026-03-02","payload":{"disk":2}}`); !strings.Contains(g.text, "disk: 1, now 2") {
			t.Errorf("answered %s", g.text)
		}
		for range 10 { // longer than a lease
			d.pass(20 * time.Second)
			if g := d.renew(g, "").is(t, 200); g.field("lease_until") != d.clock.Now().Add(30*time.Second).Format(time.RFC3339) {
				t.Errorf("answered %s", g.text)
			}
		}
		d.renew(g, `{"lease":"1m"}`).is(t, 200)
		ended := d.end(g, `{"outcome":"done","effects":{"files":7},"result":{"id":"b_1"},"detail":"exit 0","output":"7 files\n\u001b[31mred","command":"backup /home"}`).is(t, 200)
		if ended.field("state") != "done" || ended.field("outcome") != "done" {
			t.Errorf("answered %s", ended.text)
		}
		again := d.claim(200, `{"key":"backup:2026-03-02"}`)
		if again.header.Get("Idempotent-Replayed") != "true" || again.field("outcome") != "reused" || !strings.Contains(again.field("run"), `"id":"b_1"`) || again.field("token") != "" {
			t.Errorf("%v %s", again.header, again.text)
		}
		tries := d.tries(backup)
		output, err := d.Store().Output(t.Context(), backup, 1)
		if len(tries) != 1 || tries[0].Result != daybook.ResultDone || tries[0].Command != "backup /home" || tries[0].BegunAt.IsZero() || err != nil || output.Text != "7 files\nred" {
			t.Errorf("%+v, output %q, %v", tries, output.Text, err)
		}
		if r := d.run(backup); r.Triggers != 4 || r.Counts["files"] != 7 || r.FirstActor != "ci" {
			t.Errorf("%+v", r)
		}
		d.renew(g, "").is(t, 409)
		d.end(g, `{"outcome":"unknown"}`).is(t, 409)
	})
}

func TestSixteenProgramsClaimOneKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := open(t, db, engine.Options{}).as(daybook.RoleAct)
		for n := range 3 {
			var all sync.WaitGroup
			answers := make([]got, 16)
			for i := range answers {
				all.Go(func() {
					answers[i] = d.call("POST", "/api/v1/claims", fmt.Sprintf(`{"key":"backup:2026-03-0%d","timezone":"UTC","effects":"once"}`, n+1))
				})
			}
			all.Wait()
			counts := map[int]int{}
			for _, g := range answers {
				if counts[g.status]++; g.status == 201 {
					d.end(g, `{"outcome":"done"}`).is(t, 200)
				}
			}
			if counts[201] != 1 || counts[202] != 15 {
				t.Errorf("answered %v", counts)
			}
		}
	})
}

// The program dies. Work that may be repeated is claimed again by whoever comes; the one that was given up cannot speak.
func TestALostClaimIsClaimedAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := openTimed(t, db)
		first := d.claim(201, `{"key":"backup:2026-03-02","timezone":"UTC"}`)
		d.pass(time.Minute)
		if r := d.run(backup); r.State != daybook.Retryable || r.Reason != daybook.ReasonLost {
			t.Fatalf("%s %s", r.State, r.Reason)
		}
		if alerts, err := d.Store().Alerts(t.Context(), true, 10); err != nil || len(alerts) != 1 || alerts[0].Kind != daybook.AlertJobLate {
			t.Errorf("alerts %+v, %v", alerts, err)
		}
		d.renew(first, "").is(t, 409)
		second := d.claim(201, `{"key":"backup:2026-03-02"}`)
		if second.field("fence") != "2" {
			t.Errorf("answered %s", second.text)
		}
		if g := d.end(first, `{"outcome":"done"}`).is(t, 409); !strings.Contains(g.field("detail"), "later attempt") || g.field("code") != "stale" {
			t.Errorf("answered %s", g.text)
		}
		if tries := d.tries(backup); tries[0].LateResult != daybook.ResultDone || tries[0].LateTaken {
			t.Errorf("what it said is not kept: %+v", tries[0])
		}
		d.end(second, `{"outcome":"done"}`).is(t, 200)
		if r := d.run(backup); r.State != daybook.Done || r.Attempts != 2 {
			t.Errorf("%s after %d attempts", r.State, r.Attempts)
		}
	})
}

// Once-only work whose holder died is unknown: a person settles it, or the holder that was only late.
func TestALostClaimOfOnceOnlyWork(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := openTimed(t, db)
		first := d.claim(201, `{"key":"backup:2026-03-02","timezone":"UTC","effects":"once","overlap":"allow"}`)
		other := d.claim(201, `{"key":"backup:2026-03-01"}`)
		d.pass(time.Minute)
		r := d.run(backup)
		if r.State != daybook.Dead || r.Letter.Kind != daybook.LetterUnknown {
			t.Fatalf("%s, letter %+v", r.State, r.Letter)
		}
		if g := d.claim(409, `{"key":"backup:2026-03-02"}`); g.field("because") != "unknown" || !strings.Contains(g.field("next"), "daybook run resolve") {
			t.Errorf("answered %s", g.text)
		}
		if g := d.end(first, `{"outcome":"done"}`).is(t, 200); g.field("late") != "true" || g.field("state") != "done" {
			t.Errorf("answered %s", g.text)
		}
		if alerts, err := d.Store().Alerts(t.Context(), true, 10); err != nil || len(alerts) != 1 || alerts[0].Key != "backup:2026-03-01" || alerts[0].Kind != daybook.AlertUnknownOutcome {
			t.Errorf("alerts %+v, %v", alerts, err)
		}
		if _, err := d.Control().Resolve(t.Context(), ops, "backup:2026-03-01", control.Word{Step: daybook.StepRun, As: daybook.AsNotDone}, "looked at the disk"); err != nil {
			t.Fatal(err)
		}
		d.pass(0) // a serve does not try it
		again := d.claim(201, `{"key":"backup:2026-03-01"}`)
		if again.field("wire_key") != "backup:2026-03-01#run@2" || again.field("fence") != "2" {
			t.Errorf("answered %s", again.text)
		}
		d.end(other, `{"outcome":"done"}`).is(t, 409)
		d.end(again, `{"outcome":"done"}`).is(t, 200)
	})
}

// A failure climbs the ladder, and at its end a person is told; after a replay the program claims it again.
func TestTheLadderOfAClaim(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := openTimed(t, db)
		const body = `{"key":"backup:2026-03-02","timezone":"UTC","effects":"once","backoff":["5m"]}`
		g := d.claim(201, body)
		ended := d.end(g, `{"outcome":"not_done","message":"disk busy"}`).is(t, 200)
		if ended.field("state") != "retryable" || ended.field("due") == "" {
			t.Errorf("answered %s", ended.text)
		}
		d.claim(202, body)
		d.pass(6 * time.Minute)
		g = d.claim(201, body)
		if g.field("wire_key") != string(backup) || g.field("attempt") != "2" {
			t.Errorf("answered %s", g.text)
		}
		d.end(g, `{"outcome":"permanent","message":"no disk"}`).is(t, 200)
		if g := d.claim(409, body); g.field("because") != "open letter" {
			t.Errorf("answered %s", g.text)
		}
		if answers, err := d.Control().Replay(t.Context(), ops, []daybook.Key{backup}, ""); err != nil || answers[0].Outcome != daybook.Started {
			t.Fatalf("%+v, %v", answers, err)
		}
		d.pass(10 * time.Minute)
		if r := d.run(backup); r.State != daybook.Retryable || r.Attempts != 2 {
			t.Fatalf("%s after %d attempts: somebody else tried it", r.State, r.Attempts)
		}
		g = d.claim(201, body)
		if g.field("wire_key") != "backup:2026-03-02#run@2" { // the far side would answer with its refusal
			t.Errorf("answered %s", g.text)
		}
		// Handed back before it began: not counted.
		if g := d.end(g, `{"outcome":"interrupted"}`).is(t, 200); g.field("state") != "retryable" {
			t.Errorf("answered %s", g.text)
		}
		if r := d.run(backup); r.Failures != 0 || len(d.tries(backup)) != 2 || r.Attempts != 2 {
			t.Errorf("failures %d, attempts %d", r.Failures, r.Attempts)
		}
		g = d.claim(201, body)
		d.end(g, `{"outcome":"done"}`).is(t, 200)
	})
}

// Of a job that the file defines, a claim is a trigger and one attempt: policies and ladder are the file's, and serve goes
// on with what failed.
func TestAClaimOfAJobOfTheFile(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := openTimed(t, db, repeats("mail", func(j *daybook.Job) {
			j.Timezone, j.Retry, j.Timeout = "Asia/Shanghai", daybook.Retry{Backoff: []time.Duration{time.Minute}, Jitter: -1, PermanentExit: []int{3}}, 10*time.Minute
		}))
		for body, says := range map[string]string{
			`{"key":"mail:2026-03-02","timezone":"UTC"}`:    "leave timezone out",
			`{"key":"mail:2026-03-02","effects":"once"}`:    "leave effects out",
			`{"key":"mail:2026-03-02","kind":"week"}`:       "leave kind out",
			`{"key":"mail:2026-03-02","remembers":"24h"}`:   "leave remembers out",
			`{"key":"mail:2026-03-02","backoff":["1m"]}`:    "leave backoff out",
			`{"key":"mail:2026-03-02","timeout":"5m"}`:      "leave timeout out",
			`{"key":"mail:2026-03-02","schedule":"hourly"}`: "leave schedule out",
		} {
			if g := d.claim(400, body); !strings.Contains(g.field("next"), says) {
				t.Errorf("%s: answered %s", body, g.text)
			}
		}
		g := d.claim(201, `{"job":"mail","date":"2026-03-02","timezone":"Asia/Shanghai","effects":"repeatable"}`)
		if g.field("timeout") != "10m0s" || g.field("permanent_exit") != "[3]" {
			t.Errorf("answered %s", g.text)
		}
		d.end(g, `{"outcome":"not_done"}`).is(t, 200)
		d.pass(2 * time.Minute)
		if r := d.run("mail:2026-03-02"); r.State != daybook.Done || r.Attempts != 2 || r.Home != "" {
			t.Errorf("%s after %d attempts", r.State, r.Attempts)
		}
	})
}

// What a claim says of a job that nobody else defines.
func TestTheJobOfAClaim(t *testing.T) {
	t.Parallel()
	d := openTimed(t, storetest.SQLite(t))
	for body, says := range map[string]string{
		`{}`:                       "no job is named",
		`{"key":"new:2026-03-02"}`: "nothing says its time zone",
		`{"key":"new:2026-03-02","timezone":"Berlin"}`:                  "Berlin",
		`{"job":"new","timezone":"UTC"}`:                                "",
		`{"key":"new:2026-W99","timezone":"UTC"}`:                       `\"kind\": \"event\"`,
		`{"key":"new:2026-03-02","timezone":"UTC","effects":"twice"}`:   "twice",
		`{"key":"new:2026-03-02","timezone":"UTC","priority":"P0"}`:     "does not say effects",
		`{"key":"new:2026-03-02","timezone":"UTC","remembers":"5m"}`:    "too short",
		`{"key":"new:2026-03-02","timezone":"UTC","backoff":["-1s"]}`:   "not a duration",
		`{"key":"new:2026-03-02","timezone":"UTC","lease":"1h"}`:        "outside 1s to 1m0s",
		`{"key":"new:2026-03-02","timezone":"UTC","lease":"soon"}`:      "not a duration",
		`{"key":"new:2026-03-02","timezone":"UTC","source":"schedule"}`: "not one of api, once",
		`{"key":"new:2026-03-02","job":"new","timezone":"UTC"}`:         "give one of both",
		`{"key":"New:2026-03-02","timezone":"UTC"}`:                     "not allowed",
		`{"key":"new:2026-03-02","timezone":"UTC","holder":"a\nb"}`:     "control character",
		`{"key":"new:2026-03-02~2","timezone":"UTC"}`:                   "reason",
		`{"key":"new:2026-03-02","timezone":"UTC","resume":true}`:       "",
		`{"resume":true}`: "",
		`{"key":"new:2026-03-02","timezone":"UTC","kind":"month"}`:          "month",
		`{"key":"new:2026-03-02","timezone":"UTC","schedule":"0 2 30 2 *"}`: "",
	} {
		g := d.call("POST", "/api/v1/claims", body)
		if g.status != 400 && g.status != 404 || !strings.Contains(g.text, says) {
			t.Errorf("%s: answered %d %s", body, g.status, g.text)
		}
	}
	for _, c := range []struct {
		key  string
		kind daybook.WindowKind
		more string
	}{
		{"a1:2026-03-02", daybook.Day, ""}, {"a2:2026-W09", daybook.Week, ""}, {"a3:2026-02", daybook.Month, ""}, {"a4:2025-Q4", daybook.Quarter, ""},
		{"a5:2025", daybook.Year, ""}, {"a6:2026-03-02T02:00", daybook.PerFire, ""}, {"a7:file-77", daybook.PerEvent, `,"kind":"event"`},
		{"a8:2026-W08", daybook.PreviousWeek, `,"kind":"previous-week"`}, {"a9:2026-03-02/sub_42", daybook.Day, ""}, {"a10:2026-03-01", daybook.PreviousDay, `,"schedule":"0 2 * * *","kind":"previous-day"`},
	} {
		g := d.claim(201, `{"key":"`+c.key+`","timezone":"Asia/Shanghai"`+c.more+`}`)
		d.end(g, `{"outcome":"done"}`).is(t, 200)
		job, err := d.Control().Job(t.Context(), daybook.Key(c.key).Job())
		if err != nil || job.Job.Window != c.kind || job.State.Home != daybook.HomeOnce || job.Job.Owner != "ci" {
			t.Errorf("%s: %+v, %v", c.key, job.Job, err)
		}
		if c.kind != daybook.PerEvent && c.kind != daybook.PerFire {
			d.claim(409, `{"job":"`+daybook.Key(c.key).Job()+`","window":"`+map[daybook.WindowKind]string{daybook.Day: "2199-01-01", daybook.PreviousDay: "2199-01-01", daybook.Week: "2199-W01",
				daybook.PreviousWeek: "2199-W01", daybook.Month: "2199-01", daybook.Quarter: "2199-Q1", daybook.Year: "2199"}[c.kind]+`"}`) // not open yet
		}
	}
	// With a schedule and no window, it is that of the latest fire already past.
	if g := d.claim(201, `{"job":"late","timezone":"UTC","schedule":"0 2 * * *"}`); g.field("key") != "late:2026-03-02" {
		t.Errorf("answered %s", g.text)
	}
	// By a date whatever the kind, and by nothing where the kind alone tells: the wall date.
	for _, c := range [][2]string{
		{`{"job":"b1","kind":"week","timezone":"UTC","date":"2026-02-24"}`, "b1:2026-W09"}, {`{"job":"b1","date":"2026-02-17"}`, "b1:2026-W08"},
		{`{"job":"b2","kind":"previous-month","timezone":"UTC"}`, "b2:2026-02"}, {`{"job":"b3","kind":"day","timezone":"Asia/Shanghai"}`, "b3:2026-03-02"},
	} {
		g := d.claim(201, c[0])
		if g.field("key") != c[1] {
			t.Errorf("%s: answered %s", c[0], g.text)
		}
		d.end(g, `{"outcome":"done"}`).is(t, 200)
	}
	d.claim(200, `{"job":"b3"}`)
	// A deliberate second effect, and a window that was asked for too early.
	g := d.claim(201, `{"key":"a1:2026-03-02~2","reason":"the first disk was wrong"}`)
	const early = `{"key":"a1:2026-03-03","early":true,"reason":"before the move"}`
	if g := d.claim(202, early); g.field("outcome") != "joined" || !strings.Contains(g.field("message"), "waits: another run of its job is under way") {
		t.Errorf("answered %s", g.text)
	}
	d.end(g, `{"outcome":"done"}`).is(t, 200)
	d.claim(201, early)
	// Subjects side by side, and events.
	for _, key := range []string{"side:2026-03-02/a", "side:2026-03-02/b"} {
		d.claim(201, `{"key":"`+key+`","timezone":"UTC","overlap":"allow"}`)
	}
	for _, key := range []string{"a7:file-78", "a7:file-79"} {
		d.claim(201, `{"key":"`+key+`"}`)
	}
}

// Unclear once-only work is settled by the holder itself, if it can ask.
func TestQuestionsToTheHolder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := openTimed(t, db)
		unclear := func(date string) {
			g := d.claim(201, `{"key":"backup:`+date+`","timezone":"UTC","effects":"once","probe":"./ask","settles":"5m","source":"once"}`)
			if g := d.end(g, `{"outcome":"unclear","message":"it broke off"}`).is(t, 200); g.field("reason") != "settling" {
				t.Fatalf("answered %s", g.text)
			}
		}
		resume := func(status int, date, more string) got {
			return d.claim(status, `{"key":"backup:`+date+`","resume":true`+more+`}`)
		}
		answer := func(g got, status int, answers string) got {
			return d.end(g, `{"answers":[`+answers+`]}`).is(t, status)
		}
		unclear("2026-03-02")
		d.pass(0)
		resume(202, "2026-03-02", "") // who cannot ask is given nothing
		g := resume(201, "2026-03-02", `,"asks":true`)
		if g.field("questions") != `["backup:2026-03-02"]` {
			t.Fatalf("answered %s", g.text)
		}
		resume(202, "2026-03-02", `,"asks":true`) // somebody asks already
		d.renew(g, "").is(t, 200)
		answer(g, 400, `{"wire_key":"backup:2026-03-02","answer":"maybe"}`)
		answer(g, 400, `{"wire_key":"other:2026-03-02","answer":"no"}`)
		d.end(g, `{"outcome":"done","answers":[]}`).is(t, 400)
		if g := answer(g, 200, `{"wire_key":"backup:2026-03-02","answer":"no"}`); g.field("state") != "retryable" || g.field("reason") != "settling" {
			t.Errorf("a no that was too early is believed: %s", g.text)
		}
		answer(g, 409, `{"wire_key":"backup:2026-03-02","answer":"yes"}`)
		d.pass(6 * time.Minute)
		g = resume(201, "2026-03-02", `,"asks":true`)
		if g := answer(g, 200, `{"wire_key":"backup:2026-03-02","answer":"no"}`); g.field("reason") != "retry" {
			t.Errorf("answered %s", g.text)
		}
		d.pass(2 * time.Minute)
		g = resume(201, "2026-03-02", `,"asks":true`)
		if g.field("wire_key") != "backup:2026-03-02#run@2" || g.field("questions") != "" {
			t.Fatalf("answered %s", g.text)
		}
		d.end(g, `{"outcome":"unclear"}`).is(t, 200)
		g = resume(201, "2026-03-02", `,"asks":true`)
		if g.field("questions") != `["backup:2026-03-02#run@2","backup:2026-03-02"]` {
			t.Fatalf("answered %s", g.text)
		}
		if g := answer(g, 200, `{"wire_key":"backup:2026-03-02#run@2","answer":"yes","result":{"id":"b_2"}},{"wire_key":"backup:2026-03-02","answer":"no"}`); g.field("state") != "done" {
			t.Errorf("answered %s", g.text)
		}
		if r := d.run(backup); string(r.Result) != `{"id":"b_2"}` || r.Effect.SettledBy != "probe" {
			t.Errorf("result %s settled by %s", r.Result, r.Effect.SettledBy)
		}
		if r := d.run(backup); r.Triggers != 1 {
			t.Errorf("%d triggers: going on is none", r.Triggers)
		}
		questions := 0
		all, err := d.Store().Attempts(t.Context(), backup)
		for _, a := range all {
			if a.Probe {
				questions++
			}
		}
		if err != nil || questions != 4 {
			t.Errorf("%d answers are kept, %v", questions, err)
		}

		unclear("2026-03-01") // the far side does not answer, and nobody can tell
		g = resume(201, "2026-03-01", `,"asks":true`)
		if g := answer(g, 200, ""); g.field("state") != "dead" {
			t.Errorf("answered %s", g.text)
		}
	})
}

// The answer to a claim is lost on its way: made again with its Idempotency-Key, the call is given the claim that it has,
// also when the server died before it had kept the answer.
func TestAClaimWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := openTimed(t, db)
		const body = `{"key":"backup:2026-03-02","timezone":"UTC","effects":"once"}`
		first := d.claim(201, body, "Idempotency-Key", "one")
		again := d.claim(201, body, "Idempotency-Key", "one")
		if again.field("token") != first.field("token") || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("answered %s", again.text)
		}
		if _, err := db.Open(t).Write.ExecContext(t.Context(), "DELETE FROM daybook_calls"); err != nil {
			t.Fatal(err)
		}
		found := d.claim(201, body, "Idempotency-Key", "one")
		if found.field("token") != first.field("token") || found.field("fence") != "1" {
			t.Errorf("answered %s, want token %s", found.text, first.field("token"))
		}
		d.claim(202, body, "Idempotency-Key", "two")
		for i := range 2 { // the end as well
			g := call(t, "POST", d.url+"/api/v1/claims/end", `{"outcome":"done"}`, "Daybook-Token", first.field("token"), "Idempotency-Key", "end").is(t, 200)
			if (g.header.Get("Idempotent-Replayed") == "true") != (i == 1) || g.field("state") != "done" {
				t.Errorf("%v %s", g.header, g.text)
			}
		}
		if r := d.run(backup); r.State != daybook.Done || r.Attempts != 1 {
			t.Errorf("%s after %d attempts", r.State, r.Attempts)
		}
		if g := d.claim(200, body, "Idempotency-Key", "one"); g.field("outcome") != "reused" || g.field("token") != "" { // the right is over
			t.Errorf("answered %s", g.text)
		}
	})
}

// The right to do it ends with its lease, and the same call made again does not bring it back.
func TestAClaimIsNotGivenAgainWhenItIsOver(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := openTimed(t, db)
		const body = `{"key":"backup:2026-03-02","timezone":"UTC","effects":"once"}`
		d.claim(201, body, "Idempotency-Key", "one")
		d.pass(time.Minute)
		if g := d.claim(409, body, "Idempotency-Key", "one"); g.field("token") != "" {
			t.Errorf("answered %s", g.text)
		}
		if r := d.run(backup); r.State != daybook.Dead || r.Attempts != 1 {
			t.Errorf("%s after %d attempts", r.State, r.Attempts)
		}
	})
}

// The key of an undo is not one to claim or to trigger: what it takes back would be done instead.
func TestTheKeyOfAnUndoIsNotAskedFor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := openTimed(t, db)
		d.claim(400, `{"key":"backup:2026-03-02~undo","timezone":"UTC"}`)
		d.claim(400, `{"job":"backup","window":"2026-03-02~undo","timezone":"UTC"}`)
		d.claim(400, `{"key":"backup:2026-03-02/a~undo","timezone":"UTC"}`)
		d.claim(400, `{"key":"backup:2026-03-02~undo","resume":true}`)
		if r, err := d.Store().Run(t.Context(), backup); daybook.CodeOf(err) != daybook.CodeNotFound {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// A person asks for the end: the holder hears of it when it renews.
func TestACancelledClaim(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := openTimed(t, db)
		g := d.claim(201, `{"key":"backup:2026-03-02","timezone":"UTC"}`)
		if _, err := d.Control().Cancel(t.Context(), control.Person{Name: "ann"}, backup, "the disk is full"); err != nil {
			t.Fatal(err)
		}
		if g := d.renew(g, "").is(t, 200); g.field("cancelled_by") != "ann" {
			t.Errorf("answered %s", g.text)
		}
		if g := d.end(g, `{"outcome":"not_done"}`).is(t, 200); g.field("state") != "cancelled" {
			t.Errorf("answered %s", g.text)
		}
		d.claim(409, `{"key":"backup:2026-03-02"}`)
	})
}

// FuzzBodies: whatever is sent, it is answered, and never as a fault of ours.
func FuzzBodies(f *testing.F) {
	d := openTimed(f, storetest.SQLite(f), repeats("mail"))
	g := d.claim(201, `{"key":"fuzz:2026-03-02","timezone":"UTC"}`)
	paths := []string{"/api/v1/claims", "/api/v1/jobs/mail/trigger", "/api/v1/claims/renew", "/api/v1/claims/end", "/api/v1/callbacks/fuzz:2026-03-02"}
	for i, body := range []string{`{"key":"a:2026-03-02","timezone":"UTC","lease":"30s","backoff":["1m",5]}`, `{"window":"2026-03-02","payload":{"a":[1,{"b":null}]}}`, `{"lease":1e3}`,
		`{"outcome":"done","answers":[{"wire_key":"x","answer":"yes"}],"effects":{"a":1}}`, `{"outcome":"done"}`} {
		f.Add(byte(i), body)
	}
	f.Fuzz(func(t *testing.T, which byte, body string) {
		if len(body) > 1<<16 {
			return
		}
		answered := call(t, "POST", d.url+paths[int(which)%len(paths)], body, "Authorization", "Bearer "+d.token, "Daybook-Token", g.field("token"))
		if answered.status >= 500 || !json.Valid([]byte(answered.text)) {
			t.Errorf("%q: answered %d %s", body, answered.status, answered.text)
		}
	})
}
