package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/alert"
	"github.com/daybook-run/daybook/runner"
)

const told = `
timezone: UTC
defaults: {owner: ops}
channels:
  phone: {type: exec, run: [./notify, now], env: {TOKEN: "${URL}", REGION: eu}, timeout: 30s}
  hook: {type: webhook, url: "http://127.0.0.1:9000/hook", secret: "file:/run/pw", lang: zh-CN}
  log: {type: file, path: alerts.log}
alerts:
  P0: {to: [phone, hook], remind: 15m}
  P1: {to: [log]}
  fallback: [log]
jobs:
  renew:
    priority: P0
    schedule: daily 02:00
    window: day
    effects: once
    http:
      url: http://127.0.0.1:3000/jobs/renew
      method: PUT
      headers: {Authorization: "${URL}", X-Region: eu, X-Shop: 7}
      secret: "file:/run/pw"
      idempotency_key_format: quoted
    probe_url: "${REF}"
  plain: {http: {url: "http://127.0.0.1"}}
`

func TestAlertsAndCallsAreRead(t *testing.T) {
	f, err := parse("/etc/daybook/daybook.yaml", []byte(told), noFiles)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Warnings) > 0 { // the probe of a P0 job is its probe_url
		t.Error(f.Warnings)
	}
	want := Alerts{Routes: map[daybook.Priority]alert.Route{daybook.P0: {To: []string{"phone", "hook"}, Remind: 15 * time.Minute}, daybook.P1: {To: []string{"log"}}},
		Fallback: []string{"log"}}
	if !reflect.DeepEqual(f.Alerts, want) {
		t.Errorf("%+v", f.Alerts)
	}
	settings := map[string]alert.Settings{
		"phone": {Name: "phone", Type: "exec", Lang: "en", Run: []string{"/etc/daybook/notify", "now"}, Env: map[string]string{"TOKEN": "postgres://u:hunter2@db/x", "REGION": "eu"}, Timeout: 30 * time.Second},
		"hook":  {Name: "hook", Type: "webhook", Lang: "zh-CN", URL: "http://127.0.0.1:9000/hook", Secret: "hunter2"},
		"log":   {Name: "log", Type: "file", Lang: "en", Path: "/etc/daybook/alerts.log"},
	}
	masked := map[string][]string{"phone": {"postgres://u:hunter2@db/x"}, "hook": {"hunter2"}}
	for i := range f.Channels {
		c := &f.Channels[i]
		got, secrets, err := f.Settings(c, vault)
		if err != nil || !reflect.DeepEqual(got, settings[c.Name]) || !reflect.DeepEqual(secrets, masked[c.Name]) {
			t.Errorf("%s: %+v %v %v", c.Name, got, secrets, err)
		}
		if _, err := alert.NewChannel(got); err != nil && c.Name != "hook" { // its secret is too short to sign with
			t.Error(err)
		}
	}
	renew := f.Jobs[0]
	call := daybook.HTTPCall{URL: "http://127.0.0.1:3000/jobs/renew", Method: "PUT", Headers: map[string]string{"Authorization": "${URL}", "X-Region": "eu", "X-Shop": "7"},
		Secret: "file:/run/pw", Quoted: true}
	if renew.HTTP == nil || !reflect.DeepEqual(*renew.HTTP, call) || renew.ProbeURL != "${REF}" || !renew.Asks() {
		t.Errorf("%+v %q", renew.HTTP, renew.ProbeURL)
	}
	env, err := renew.Environment(vault)
	if err != nil || !reflect.DeepEqual(env, map[string]string{runner.EnvSecret: "hunter2", runner.EnvHeader + "Authorization": "postgres://u:hunter2@db/x",
		runner.EnvProbeURL: "${URL}"}) {
		t.Errorf("%v %v", env, err)
	}
	if strings.Contains(string(renew.Canonical()), "hunter2") {
		t.Error("the definition holds a secret")
	}
}

// A way of its own replaces the default's, whichever form each has.
func TestAnotherWayReplacesTheDefault(t *testing.T) {
	f, err := parse("x", []byte(`
timezone: UTC
defaults: {owner: ops, run: [./all], probe: [./ask]}
jobs:
  call: {http: {url: "http://127.0.0.1"}, effects: once, probe_url: "http://127.0.0.1/probe"}
  command: {}
`), noFiles)
	if f == nil || f.Jobs[0].HTTP == nil || !f.Jobs[0].Command.IsZero() || !f.Jobs[0].Probe.IsZero() || len(f.Jobs[1].Command.Argv) != 1 {
		t.Errorf("%+v %v", f, err)
	}
}

func TestASecretThatIsMissingNamesItsChannel(t *testing.T) {
	f, err := parse("x", []byte(strings.Replace(told, "file:/run/pw\", lang", "${MISSING}\", lang", 1)), noFiles)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = f.Settings(&f.Channels[1], vault)
	if daybook.CodeOf(err) != daybook.CodeInvalid || !strings.Contains(err.Error(), "secret of channel hook: environment variable MISSING is not set") || daybook.HintOf(err) == "" {
		t.Error(err)
	}
}
