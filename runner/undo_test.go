package runner

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-run/daybook"
)

func charged() *daybook.StepRecord {
	return &daybook.StepRecord{Key: "renew:2026-10-26", Step: "charge", State: daybook.EffectDone, Generation: 2, Data: json.RawMessage(`{"id":"ch_7"}`)}
}

// An undo command finds what it takes back, and its own wire key; its exit code is read as that of an attempt.
func TestUndoCommand(t *testing.T) {
	t.Parallel()
	e := &Exec{}
	told := filepath.Join(t.TempDir(), "told")
	for exit, want := range map[string]daybook.Result{"0": daybook.ResultDone, "75": daybook.ResultNotDone, "65": daybook.ResultPermanent, "1": daybook.ResultUnclear} {
		o := order(t, "false")
		o.Job.Undo = daybook.Command{Shell: `printf '%s|%s|%s|%s|%s' "$DAYBOOK_WIRE_KEY" "$DAYBOOK_EFFECT_KEY" "$DAYBOOK_EFFECT_STEP" "$DAYBOOK_EFFECT_RESULT" "$(cat)" > ` + told + `; exit ` + exit}
		o.Job.Stdin = "for the work, not for its undo"
		o.WireKey = "renew:2026-10-26#charge~undo"
		if !e.CanUndo(o, charged()) {
			t.Fatal("it cannot undo")
		}
		if out := e.Undo(t.Context(), o, charged()); out.Result != want {
			t.Errorf("exit %s is read as %s: %s", exit, out.Result, out.Error)
		}
		b, err := os.ReadFile(told)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(b); got != `renew:2026-10-26#charge~undo|renew:2026-10-26#charge@2|charge|{"id":"ch_7"}|` {
			t.Errorf("the undo was told %s", got)
		}
	}
	if o := order(t, "true"); e.CanUndo(o, charged()) {
		t.Error("a job without an undo can be undone")
	}
}

// An undo by HTTP is one POST with the wire key of the undo and, in its body, what it takes back: the same bytes each time.
func TestUndoURL(t *testing.T) {
	t.Parallel()
	url, requests := notebook(t)
	o := call(t, url)
	o.Job.UndoURL = url + "/undo?run={key}"
	o.Job.HTTP.Headers = map[string]string{"X-Shop": "7"}
	o.WireKey = "renew:2026-10-26#charge~undo"
	h := atNoon()
	for range 2 {
		if out := h.Undo(t.Context(), o, charged()); out.Result != daybook.ResultDone {
			t.Fatalf("%s: %s", out.Result, out.Error)
		}
	}
	list := requests()
	if len(list) != 2 || list[0].body != list[1].body {
		t.Fatalf("%d requests: %v", len(list), list)
	}
	r := list[0]
	if r.Method != "POST" || r.Header.Get("Idempotency-Key") != o.WireKey || r.Header.Get("X-Shop") != "7" || !strings.HasSuffix(r.URL.Path, "/undo") {
		t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
	}
	var body struct {
		Key, Step string
		EffectKey string `json:"effect_key"`
		Result    map[string]string
		Payload   map[string]any
	}
	if err := json.Unmarshal([]byte(r.body), &body); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
	if body.Key != string(o.Run.Key) || body.Step != "charge" || body.EffectKey != "renew:2026-10-26#charge@2" || body.Result["id"] != "ch_7" || body.Payload["cents"] != 1500.0 {
		t.Errorf("body %s", r.body)
	}
}

func TestUndoURLThatAnswersOtherwise(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]daybook.Result{
		"202 Accepted": daybook.ResultUnclear, "422 Unprocessable Entity": daybook.ResultPermanent, "503 Service Unavailable": daybook.ResultNotDone,
		"500 Internal Server Error": daybook.ResultUnclear, "504 Gateway Timeout": daybook.ResultUnknown, "302 Found": daybook.ResultUnclear,
	} {
		o := call(t, "http://127.0.0.1:1/")
		o.Job.UndoURL = saying(t, "HTTP/1.1 "+status+"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		o.WireKey = "renew:2026-10-26#charge~undo"
		if out := atNoon().Undo(t.Context(), o, charged()); out.Result != want {
			t.Errorf("%s is read as %s: %s", status, out.Result, out.Error)
		}
	}
}

// A probe is asked about the step of an undo, and about the run that it takes back.
func TestProbeOfAnUndo(t *testing.T) {
	t.Parallel()
	url, requests := notebook(t)
	o := call(t, url)
	o.Job.ProbeURL = url
	o.Run.Key = o.Run.Key.Undo()
	atNoon().Probe(t.Context(), o, o.Run.Key.WireKey("charge", 2))
	q := requests()[0].URL.Query()
	base := string(o.Run.Key.Base())
	if q.Get("key") != base+"#charge~undo@2" || q.Get("run") != base || q.Get("step") != "charge~undo" {
		t.Errorf("asked %v", q)
	}
}
