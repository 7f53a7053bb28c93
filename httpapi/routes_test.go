package httpapi_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/httpapi"
	"github.com/daybook-run/daybook/store/storetest"
)

func TestTriggerByHTTP(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := open(t, db, engine.Options{}, repeats("mail"), repeats("renew", func(j *daybook.Job) { j.Effects = daybook.Once })).as(daybook.RoleAct)
		const path = "/api/v1/jobs/mail/trigger"
		g := d.call("POST", path, `{"window":"2026-03-02","payload":{"cents":1500}}`).is(t, 201)
		if g.field("outcome") != "started" || g.field("key") != "mail:2026-03-02" || g.header.Get("Location") != "../../runs/mail:2026-03-02" || g.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%v %s", g.header, g.text)
		}
		if g := d.call("POST", path, `{"date":"2026-03-02"}`).is(t, 202); g.field("outcome") != "joined" || g.field("schema") != "daybook/trigger.v1" {
			t.Errorf("answered %s", g.text)
		}
		g = d.call("POST", path, `{"window":"2026-03-02","payload":{"cents":1600}}`).is(t, 422)
		for name, want := range map[string]string{"title": "Unprocessable Entity", "status": "422", "key": "mail:2026-03-02", "outcome": "refused", "because": "other payload"} {
			if g.field(name) != want {
				t.Errorf("%s is %q, want %q", name, g.field(name), want)
			}
		}
		if !strings.Contains(g.field("difference"), "cents: 1500, now 1600") || g.field("next") == "" || g.field("run") == "" {
			t.Errorf("answered %s", g.text)
		}
		// What is done is told, and nothing is done.
		serving := serve(t, db, engine.Options{}, repeats("mail"), repeats("renew", func(j *daybook.Job) { j.Effects = daybook.Once }))
		serving.ends("mail:2026-03-02", daybook.Done)
		if g := d.call("POST", path, `{"window":"2026-03-02"}`).is(t, 200); g.field("outcome") != "reused" || g.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%v %s", g.header, g.text)
		}
		d.call("POST", path, `{"window":"2026-03-02","again":true}`).is(t, 201)
		d.call("POST", "/api/v1/jobs/renew/trigger", `{"window":"2026-03-02"}`).is(t, 201)
		serving.ends("renew:2026-03-02", daybook.Done)
		if g := d.call("POST", "/api/v1/jobs/renew/trigger", `{"window":"2026-03-02","again":true}`).is(t, 409); g.field("because") != "done once" || g.field("code") != "conflict" {
			t.Errorf("answered %s", g.text)
		}
		d.call("POST", path, `{"window":"2199-01-01"}`).is(t, 409)
		d.call("POST", path, `{"window":"2199-01-01","early":true}`).is(t, 400)
		d.call("POST", path, `{"window":"2199-01-01","early":true,"reason":"a test"}`).is(t, 201)

		if g := d.call("POST", "/api/v1/jobs/mial/trigger", `{"window":"2026-03-02"}`).is(t, 404); g.field("next") != "did you mean mail?" {
			t.Errorf("answered %s", g.text)
		}
		d.call("POST", path, `{"window":"2026-W10"}`).is(t, 400)

		until(t, "the further attempt has ended", func() bool { r := d.run("mail:2026-03-02"); return r.State == daybook.Done && r.Attempts == 2 })
		g = d.call("GET", "/api/v1/runs/mail%3A2026-03-02", "").is(t, 200)
		if g.field("state") != "done" || g.field("schema") != "daybook/run.v1" {
			t.Errorf("answered %s", g.text)
		}
		d.call("GET", "/api/v1/runs/mail:2026-03-03", "").is(t, 404)
		d.call("GET", "/api/v1/runs/nonsense", "").is(t, 400)
	})
}

// A subject stands in a key as it does in an address, dots and slashes included.
func TestKeysInPaths(t *testing.T) {
	t.Parallel()
	d := open(t, storetest.SQLite(t), engine.Options{}, repeats("mail")).as(daybook.RoleAct)
	for _, subject := range []string{"sub_42", "..", ".", "a/b", "a b", "ü%2F", "a?b#c", "a//b", strings.Repeat("x", 128)} {
		body, _ := json.Marshal(map[string]string{"window": "2026-03-02", "subject": subject})
		g := d.call("POST", "/api/v1/jobs/mail/trigger", string(body)).is(t, 201)
		key := g.field("key")
		back := d.call("GET", "/api/v1/runs/"+control.PathOf(daybook.Key(key)), "").is(t, 200)
		if back.field("key") != key {
			t.Errorf("%q: asked for %s, got %s", subject, key, back.field("key"))
		}
	}
}

// Bodies that do not say what they mean are refused, with the nearest right word.
func TestStrictBodies(t *testing.T) {
	t.Parallel()
	d := open(t, storetest.SQLite(t), engine.Options{}, repeats("mail")).as(daybook.RoleAct)
	for body, says := range map[string]string{
		`{"windwo":"2026-03-02"}`:                        `did you mean \"window\"?`,
		`{"Window":"2026-03-02"}`:                        `did you mean \"window\"?`,
		`{"window":"2026-03-02","window":"2026-03-03"}`:  "twice",
		`{"payload":{"a":{"b":1,"b":2}},"window":"x"}`:   "twice",
		`{"window":20260302}`:                            "a text in quotes",
		`{"again":"yes"}`:                                "true or false",
		`{"window":"2026-03-02"} {}`:                     "",
		`{"window":"2026-03-02"`:                         "",
		`[]`:                                             "not a JSON object",
		`"2026-03-02"`:                                   "not a JSON object",
		`null`:                                           "not a JSON object",
		"{\"window\":\"\xff\"}":                          "UTF-8",
		`{"zzzzzzzz":1}`:                                 "there are: again",
		`window=2026-03-02`:                              "",
		strings.Repeat("[", 20000):                       "",
		`{"payload":1e999999,"window":"2026-03-02"}`:     "too large",
		`{"window":"` + strings.Repeat("x", 1000) + `"}`: "",
	} {
		g := d.call("POST", "/api/v1/jobs/mail/trigger", body)
		if g.is(t, 400); !strings.Contains(g.text, says) {
			t.Errorf("%.60s: answered %s, want %s in it", body, g.text, says)
		}
	}
	d.call("POST", "/api/v1/jobs/mail/trigger", `{"payload":"`+strings.Repeat("x", 300<<10)+`"}`).is(t, 413)
	runs, err := d.Control().Find(t.Context(), "mail:", 10)
	if err != nil || len(runs) != 0 {
		t.Errorf("made %d runs, %v", len(runs), err)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	d := open(t, storetest.SQLite(t), engine.Options{}, repeats("mail")).as(daybook.RoleAct)
	get := d.call("GET", "/status.json", "").is(t, 200)
	head := d.call("HEAD", "/status.json", "")
	if head.status != 200 || head.text != "" || head.header.Get("Content-Type") != get.header.Get("Content-Type") || head.header.Get("Content-Length") == "0" {
		t.Errorf("HEAD: %d %v %q", head.status, head.header, head.text)
	}
	if g := d.call("GET", "/api/v1/nodes", "").is(t, 200); !strings.HasPrefix(g.text, `{"schema":"daybook/nodes.v1","nodes":[`) {
		t.Errorf("nodes: %s", g.text)
	}
	if g := d.call("OPTIONS", "/status.json", ""); g.status != 204 || g.header.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("OPTIONS: %d %v", g.status, g.header)
	}
	if g := d.call("DELETE", "/status.json", "").is(t, 405); g.header.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("DELETE: %v", g.header)
	}
	if g := d.call("GET", "/api/v1/jobs/mail/trigger", "").is(t, 405); g.header.Get("Allow") != "OPTIONS, POST" {
		t.Errorf("GET: %v", g.header)
	}
	d.call("GET", "/api/v2/x", "").is(t, 404)
	d.call("GET", "/", "").is(t, 404)
	for _, g := range []got{get, d.call("GET", "/nothing", "")} {
		if g.header.Get("X-Content-Type-Options") != "nosniff" || g.header.Get("Cache-Control") != "no-store" || !strings.Contains(g.header.Get("Content-Security-Policy"), "'none'") {
			t.Errorf("headers %v", g.header)
		}
	}
}

func TestStatusWords(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		fails := repeats("mail", func(j *daybook.Job) {
			j.Command.Argv, j.Retry.Backoff = []string{"false"}, []time.Duration{}
		})
		d := open(t, db, engine.Options{})
		word := func(status int, want string) {
			t.Helper()
			g := d.call("GET", "/status.txt", "")
			if first, _, _ := strings.Cut(g.text, "\n"); g.status != status || first != want || !strings.HasPrefix(g.header.Get("Content-Type"), "text/plain") {
				t.Errorf("answered %d %q, want %d %s", g.status, g.text, status, want)
			}
		}
		word(503, "UNKNOWN") // nobody serves, and no job is defined
		serving := serve(t, db, engine.Options{}, fails)
		word(200, "OK")
		serving.trigger("mail", "2026-03-02")
		serving.ends("mail:2026-03-02", daybook.Dead)
		word(503, "NOT OK")
		if g := d.call("GET", "/status.json", "").is(t, 200); g.field("open_letters") != "1" || g.field("schema") != "daybook/status.v1" {
			t.Errorf("answered %s", g.text)
		}
		d.call("GET", "/healthz", "").is(t, 200)
		d.call("GET", "/readyz", "").is(t, 200)
	})
}

// Every route that is answered stands in the document, and every other way round.
func TestOpenAPIHasEveryRoute(t *testing.T) {
	t.Parallel()
	d := open(t, storetest.SQLite(t), engine.Options{}, repeats("mail")).as(daybook.RoleAct)
	g := d.call("GET", "/api/v1/openapi.json", "").is(t, 200)
	var doc struct {
		OpenAPI    string
		Paths      map[string]map[string]struct{ OperationID, Summary string }
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal([]byte(g.text), &doc); err != nil || doc.OpenAPI != "3.1.0" {
		t.Fatalf("%v: %s", err, g.text)
	}
	parameter := regexp.MustCompile(`\{[a-z]+\}`)
	operations := map[string]bool{}
	for path, methods := range doc.Paths {
		answered := map[string]bool{}
		for _, m := range strings.Split(d.call("OPTIONS", parameter.ReplaceAllString(path, "x"), "").header.Get("Allow"), ", ") {
			answered[strings.ToLower(m)] = m != "OPTIONS" && m != "HEAD"
		}
		for method, op := range methods {
			if !answered[method] || op.Summary == "" || op.OperationID == "" || operations[op.OperationID] {
				t.Errorf("%s %s: answered %v, operation %+v", method, path, answered[method], op)
			}
			operations[op.OperationID] = true
			delete(answered, method)
		}
		for method, ok := range answered {
			if ok {
				t.Errorf("%s %s is answered and not in the document", method, path)
			}
		}
	}
	for _, route := range httpapi.Routes() {
		method, path, _ := strings.Cut(strings.ReplaceAll(route, "...}", "}"), " ")
		if _, ok := doc.Paths[path][strings.ToLower(method)]; !ok {
			t.Errorf("%s is not in the document", route)
		}
	}
	if len(operations) != len(httpapi.Routes()) {
		t.Errorf("%d operations, %d routes", len(operations), len(httpapi.Routes()))
	}
	// Nothing is referred to that is not there.
	for _, ref := range regexp.MustCompile(`"#/components/schemas/([A-Za-z]+)"`).FindAllStringSubmatch(g.text, -1) {
		if doc.Components.Schemas[ref[1]] == nil {
			t.Errorf("there is no schema %s", ref[1])
		}
	}
}

// The same call again is given the same answer and does nothing; another call under the same key is refused.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := open(t, db, engine.Options{}, repeats("mail")).as(daybook.RoleAct)
		const path = "/api/v1/jobs/mail/trigger"
		const key = `"8e03978e-40d5-43dd-bc93-6894a57f9324"`
		first := d.call("POST", path, `{"window":"2026-03-02"}`, "Idempotency-Key", key).is(t, 201)
		for _, again := range []string{key, strings.Trim(key, `"`)} { // in quotes or bare, it is the same
			g := d.call("POST", path, `{"window":"2026-03-02"}`, "Idempotency-Key", again).is(t, 201)
			if g.text != first.text || g.header.Get("Idempotent-Replayed") != "true" || g.header.Get("Location") != first.header.Get("Location") || g.header.Get("Content-Type") != first.header.Get("Content-Type") {
				t.Errorf("%v %s, want %s", g.header, g.text, first.text)
			}
		}
		if triggers, err := d.Store().Triggers(t.Context(), "mail:2026-03-02"); err != nil || len(triggers) != 1 {
			t.Errorf("%d triggers, %v", len(triggers), err)
		}
		d.call("POST", path, `{"window":"2026-03-03"}`, "Idempotency-Key", key).is(t, 422)
		d.call("POST", "/api/v1/jobs/other/trigger", `{"window":"2026-03-02"}`, "Idempotency-Key", key).is(t, 422)
		other := *d
		other.as(daybook.RoleAct).call("POST", path, `{"window":"2026-03-02"}`, "Idempotency-Key", key).is(t, 202) // a key of its own

		// What was refused stays refused under the same key; what could not be understood was never asked.
		if _, err := d.Control().Pause(t.Context(), ops, "mail", "a test"); err != nil {
			t.Fatal(err)
		}
		d.call("POST", path, `{"window":"2026-03-04"}`, "Idempotency-Key", "refused").is(t, 409)
		d.call("POST", path, `{"windwo":"2026-03-05"}`, "Idempotency-Key", "broken").is(t, 400)
		if _, err := d.Control().Resume(t.Context(), ops, "mail"); err != nil {
			t.Fatal(err)
		}
		if g := d.call("POST", path, `{"window":"2026-03-04"}`, "Idempotency-Key", "refused").is(t, 409); g.field("because") != "paused" {
			t.Errorf("answered %s", g.text)
		}
		d.call("POST", path, `{"window":"2026-03-05"}`, "Idempotency-Key", "broken").is(t, 201)

		for _, bad := range []string{`"`, `""`, `"a`, `"a"b`, `"a\b"`, "a b", "a,b", "ä", strings.Repeat("x", 256), `"` + strings.Repeat("x", 256) + `"`} {
			d.call("POST", path, `{"window":"2026-03-06"}`, "Idempotency-Key", bad).is(t, 400)
		}
		d.call("POST", path, `{"window":"2026-03-06"}`, "Idempotency-Key", "a", "Idempotency-Key", "a").is(t, 400)
		d.call("POST", path, `{"window":"2026-03-06"}`, "Idempotency-Key", `"a\\b\"c"`).is(t, 201)
		d.call("POST", path, `{"window":"2026-03-06"}`, "Idempotency-Key", strings.Repeat("x", 255)).is(t, 202)
	})
}

// Sixteen programs make one call at once: it is done once, and whoever comes while it is under way is told so.
func TestIdempotencyKeyAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := open(t, db, engine.Options{}, repeats("mail")).as(daybook.RoleAct)
		var all sync.WaitGroup
		answers := make([]got, 16)
		for i := range answers {
			all.Go(func() {
				answers[i] = d.call("POST", "/api/v1/jobs/mail/trigger", `{"window":"2026-03-02"}`, "Idempotency-Key", "one")
			})
		}
		all.Wait()
		counts := map[string]int{}
		for _, g := range answers {
			counts[fmt.Sprint(g.status, g.header.Get("Idempotent-Replayed"), g.header.Get("Retry-After"))]++
		}
		if counts["201"] != 1 || counts["201"]+counts["201true"]+counts["4091"] != 16 {
			t.Errorf("answered %v", counts)
		}
		if triggers, err := d.Store().Triggers(t.Context(), "mail:2026-03-02"); err != nil || len(triggers) != 1 {
			t.Errorf("%d triggers, %v", len(triggers), err)
		}
	})
}
