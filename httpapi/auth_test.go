package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/httpapi"
	"github.com/daybook-run/daybook/store/storetest"
)

// repeats is a job that nothing here runs.
func repeats(name string, change ...func(*daybook.Job)) daybook.Job {
	j := daybook.Job{Name: name, Owner: "ops", Timezone: "UTC", Window: daybook.Day, Command: daybook.Command{Argv: []string{"true"}}}
	for _, c := range change {
		c(&j)
	}
	return j
}

// TestH65CrossSitePost: a page of another site cannot change anything through the browser of somebody who sits at this
// machine, token or not; a program with a token can.
func TestH65CrossSitePost(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := open(t, db, engine.Options{}, repeats("mail")).as(daybook.RoleAct)
		const path, body = "/api/v1/jobs/mail/trigger", `{"window":"2026-03-02"}`
		for _, from := range [][]string{
			{"Origin", "http://evil.test"},
			{"Origin", "null"},
			{"Origin", "http://localhost:1"},
			{"Sec-Fetch-Site", "cross-site"},
			{"Sec-Fetch-Site", "same-site", "Origin", "http://other.evil.test"},
		} {
			if g := d.call("POST", path, body, from...).is(t, 403); !strings.Contains(g.field("detail"), "another site") {
				t.Errorf("%v: answered %s", from, g.text)
			}
			withoutToken := call(t, "POST", d.url+path, body, from...)
			withoutToken.is(t, 403)
		}
		if _, err := d.Store().Run(t.Context(), "mail:2026-03-02"); daybook.CodeOf(err) != daybook.CodeNotFound {
			t.Fatalf("another site made the run: %v", err)
		}
		call(t, "POST", d.url+path, body).is(t, 401) // no token, from this very machine
		d.call("POST", path, body).is(t, 201)
		d.call("POST", path, body, "Origin", d.url, "Sec-Fetch-Site", "same-origin").is(t, 200+2)
	})
}

func TestTokensAndRoles(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		d := open(t, db, engine.Options{}, repeats("mail"))
		token := map[daybook.Role]string{}
		for _, role := range daybook.Roles {
			token[role] = d.as(role).token
		}
		const change, look = "/api/v1/jobs/mail/trigger", "/status.json"
		asked := func(method, path, token string, headers ...string) got {
			return call(t, method, d.url+path, "", append([]string{"Authorization", token}, headers...)...)
		}
		asked("POST", change, "Bearer "+token[daybook.RoleView]).is(t, 403)
		asked("POST", change, "Bearer "+token[daybook.RolePing]).is(t, 403)
		asked("POST", change, "Bearer dbt_"+strings.Repeat("A", 43)).is(t, 403)
		asked("POST", change, "Bearer ").is(t, 403)
		asked("POST", change, "Basic "+token[daybook.RoleAct]).is(t, 403)
		asked("POST", change, "Bearer "+token[daybook.RoleAct], "Authorization", "Bearer "+token[daybook.RoleAct]).is(t, 403)
		if g := asked("POST", change, "").is(t, 401); !strings.HasPrefix(g.header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("answered %v", g.header)
		}
		call(t, "POST", d.url+change, `{"window":"2026-03-02"}`, "Authorization", "bearer  "+token[daybook.RoleAct]).is(t, 201)
		trigger, err := d.Store().Triggers(t.Context(), "mail:2026-03-02")
		if err != nil || len(trigger) != 1 || trigger[0].Source != daybook.SourceAPI || trigger[0].Actor != "ci" {
			t.Errorf("recorded as %+v, %v", trigger, err)
		}

		// Reading is open to this machine, and to nobody who comes by another name or through a proxy.
		asked("GET", look, "").is(t, 200)
		asked("GET", look, "", "Host", "localhost:7070").is(t, 200)
		asked("GET", look, "", "Host", "[::1]:7070").is(t, 200)
		asked("GET", look, "", "Host", "evil.test").is(t, 401)
		asked("GET", look, "", "Host", "127.0.0.1.evil.test").is(t, 401)
		asked("GET", look, "", "X-Forwarded-For", "203.0.113.7").is(t, 401)
		asked("GET", look, "Bearer "+token[daybook.RoleView], "X-Forwarded-For", "203.0.113.7").is(t, 200)
		asked("GET", look, "Bearer "+token[daybook.RolePing]).is(t, 403)
		asked("GET", "/healthz", "", "Host", "evil.test").is(t, 200)

		// A handler of which nobody knows who reaches it asks for a token.
		closed := httptest.NewServer(http.StripPrefix("/daybook", httpapi.Handler(d.Control())))
		defer closed.Close()
		call(t, "GET", closed.URL+"/daybook"+look, "").is(t, 401)
		call(t, "GET", closed.URL+"/daybook"+look, "", "Authorization", "Bearer "+token[daybook.RoleAct]).is(t, 200)
		call(t, "GET", closed.URL+"/daybook/healthz", "").is(t, 200)
		call(t, "GET", closed.URL+"/daybook/api/v1/runs/mail:2026-03-02", "", "Authorization", "Bearer "+token[daybook.RoleView]).is(t, 200)

		if _, err := d.Control().RevokeToken(t.Context(), ops, "tk_2"); err != nil { // as Roles has them: view, act, ping
			t.Fatal(err)
		}
		if g := asked("POST", change, "Bearer "+token[daybook.RoleAct]).is(t, 403); !strings.Contains(g.field("detail"), "tk_2 was revoked") {
			t.Errorf("answered %s", g.text)
		}
		acts, err := d.Store().Activities(t.Context(), time.Time{}, "ops", 10)
		if err != nil || len(acts) != 4 || acts[0].Action != "token revoke" || acts[0].Note != "tk_2" || acts[3].Note != "tk_1: view ci" {
			t.Errorf("recorded as %+v, %v", acts, err)
		}
		for _, act := range acts {
			for _, text := range token {
				if strings.Contains(act.Note+act.Before+act.After, text) {
					t.Error("a token stands in the record")
				}
			}
		}
	})
}
