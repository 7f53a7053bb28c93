package httpapi_test

import (
	"strings"
	"testing"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/store/storetest"
)

// A done key is drilled over HTTP, and what is not done is not; the record is listed.
func TestDrillsByHTTP(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := serve(t, db.Fresh(t), engine.Options{}, repeats("mail"), repeats("renew", func(j *daybook.Job) { j.Effects = daybook.Once })).as(daybook.RoleAct)
		d.call("POST", "/api/v1/drills", `{"job":"renew","window":"2026-03-02"}`).is(t, 404)
		d.call("POST", "/api/v1/jobs/renew/trigger", `{"window":"2026-03-02"}`).is(t, 201)
		d.ends("renew:2026-03-02", daybook.Done)
		g := d.call("POST", "/api/v1/drills", `{"job":"renew","window":"2026-03-02","doors":["manual","backfill"],"times":2}`).is(t, 200)
		if g.field("schema") != "daybook/drill.v1" || g.field("result") != "none" || g.field("new_effects") != "0" ||
			!strings.Contains(g.text, `"answers":[{"door":"manual","outcome":"reused","times":2},{"door":"backfill","outcome":"reused","times":2}]`) {
			t.Error(g.text)
		}
		if g := d.call("POST", "/api/v1/drills", `{"job":"renew","window":"2026-03-02","doors":["front"]}`).is(t, 400); !strings.Contains(g.text, "is not a door") {
			t.Error(g.text)
		}
		d.call("POST", "/api/v1/drills", `{"job":"renew","window":"2026-03-02","count":"rm -rf"}`).is(t, 400)
		if g := d.call("GET", "/api/v1/drills?job=renew&limit=5", "").is(t, 200); strings.Count(g.text, `"daybook/drill.v1"`) != 1 {
			t.Error(g.text)
		}
		d.call("GET", "/api/v1/drills?limit=all", "").is(t, 400)
		d.call("GET", "/api/v1/drills?job=renwe", "").is(t, 404)
		if r := d.run("renew:2026-03-02"); r.Attempts != 1 {
			t.Errorf("%d attempts", r.Attempts)
		}
		d.as(daybook.RoleView).call("POST", "/api/v1/drills", `{"job":"renew","window":"2026-03-02"}`).is(t, 403)
	})
}
