package httpapi_test

import (
	"strings"
	"testing"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store/storetest"
)

// A person's word about an unknown outcome is taken over HTTP, with the result that the far side handed back; once, and from nobody who
// may only look.
func TestResolveByHTTP(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := openTimed(t, db)
		const path = "/api/v1/runs/resolve"
		g := d.claim(201, `{"key":"backup:2026-03-02","timezone":"UTC","effects":"once","overlap":"allow"}`)
		d.end(g, `{"outcome":"unknown"}`).is(t, 200)
		for body, status := range map[string]int{
			`{"key":"backup:2026-03-02","step":"run","as":"done"}`:                                                    400, // no reason
			`{"key":"backup:2026-03-02","step":"run","as":"don","reason":"in their book"}`:                            400,
			`{"key":"backup:2026-03-02","step":"charge","as":"done","reason":"in their book"}`:                        400,
			`{"key":"backup:2026-03-02","step":"run","as":"not-done","result":{"id":1},"reason":"not in their book"}`: 400,
			`{"key":"backup:2026-03-02","step":"run","as":"done","results":{"id":1},"reason":"in their book"}`:        400,
			`{"key":"backup:2026-03-03","step":"run","as":"done","reason":"in their book"}`:                           404,
			`{"key":"backup:2026-03-02","step":"run","as":"done","reason":"in their book","result":` + long() + `}`:   400,
			`{"key":"backup:2026-03-02","step":"run","as":"ask"}`:                                                     409, // nobody can be asked
		} {
			if g := d.call("POST", path, body); g.status != status {
				t.Errorf("%.120s: answered %d, want %d: %s", body, g.status, status, g.text)
			}
		}
		g = d.call("POST", path, `{"key":"backup:2026-03-02","step":"run","as":"done","result":{"id":"b_1"},"reason":"in their book"}`).is(t, 200)
		if g.field("schema") != "daybook/act.v1" || g.field("from") != "dead" || g.field("to") != "done" || !strings.Contains(g.text, `"result":{"id":"b_1"}`) {
			t.Errorf("answered %s", g.text)
		}
		if r := d.run("backup:2026-03-02"); r.State != daybook.Done || string(r.Effect.Data) != `{"id":"b_1"}` || string(r.Result) != `{"id":"b_1"}` {
			t.Errorf("%s, %s", r.State, r.Effect.Data)
		}
		d.call("POST", path, `{"key":"backup:2026-03-02","step":"run","as":"done","reason":"in their book"}`).is(t, 409)
		d.as(daybook.RoleView).call("POST", path, `{"key":"backup:2026-03-02","step":"run","as":"done","reason":"in their book"}`).is(t, 403)
	})
}

// long is a result that is too long to be kept.
func long() string { return `"` + strings.Repeat("x", daybook.MaxResultBytes) + `"` }

// Letters are replayed over HTTP as a plan showed them, or not at all.
func TestReplayPlanByHTTP(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := openTimed(t, db)
		for _, k := range []string{"backup:2026-03-02", "backup:2026-03-01"} {
			g := d.claim(201, `{"key":"`+k+`","timezone":"UTC","effects":"once","overlap":"allow"}`)
			d.end(g, `{"outcome":"permanent","message":"disk full"}`).is(t, 200)
		}
		d.call("GET", "/api/v1/dead/plan?job=bakcup", "").is(t, 404)
		g := d.call("GET", "/api/v1/dead/plan?job=backup", "").is(t, 200)
		plan := g.field("id")
		if g.field("schema") != "daybook/replay_plan.v1" || g.field("letters") != "2" || !strings.HasPrefix(plan, "pl_") || !strings.Contains(g.text, `"key":"backup:2026-03-01"`) {
			t.Fatalf("answered %s", g.text)
		}
		const path = "/api/v1/dead/replay"
		d.call("POST", path, `{}`).is(t, 400)
		d.call("POST", path, `{"plan":"pl_000000000000","job":"backup"}`).is(t, 409)
		if r := d.run("backup:2026-03-01"); r.State != daybook.Dead {
			t.Fatalf("%s", r.State)
		}
		if g := d.call("POST", path, `{"plan":"`+plan+`","job":"backup","reason":"the disk is free"}`).is(t, 200); g.field("replayed") != "2" || g.field("plan") != plan {
			t.Errorf("answered %s", g.text)
		}
		for _, k := range []daybook.Key{"backup:2026-03-02", "backup:2026-03-01"} {
			if r := d.run(k); r.State != daybook.Retryable || r.Letter.State != daybook.LetterReplayed || r.Letter.Note != "the disk is free" {
				t.Errorf("%s is %s, letter %+v", k, r.State, r.Letter)
			}
		}
		d.call("POST", path, `{"plan":"`+plan+`","job":"backup"}`).is(t, 409)
		if g := d.call("GET", "/api/v1/dead/plan", "").is(t, 200); g.field("letters") != "0" || g.field("id") != "" {
			t.Errorf("answered %s", g.text)
		}
		d.as(daybook.RoleView).call("GET", "/api/v1/dead/plan", "").is(t, 200)
		d.as(daybook.RoleView).call("POST", path, `{"plan":"`+plan+`"}`).is(t, 403)
	})
}
