package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/internal/gateway"
)

// night is the night of 29 March in one process: a clock that is moved by hand, a gateway with its own book, and workers that
// are lost. The gateway charges for one caller at a time, so the job has one serial key.
type night struct {
	t      *testing.T
	db     engine.DB
	ledger string
	far    *httptest.Server
	book   string

	mu  sync.Mutex
	now time.Time

	worker *engine.Engine
	kill   context.CancelFunc
	while  map[string]func() // what happens while a wire key is charged, once
}

const nightDay = "2026-03-29"

// at is an instant of the night, in UTC.
func at(clock string) time.Time {
	t, err := time.Parse(time.DateTime, nightDay+" "+clock)
	if err != nil {
		panic(err)
	}
	return t
}

func newNight(t *testing.T, ledger string) *night {
	t.Helper()
	n := &night{t: t, ledger: ledger, book: filepath.Join(t.TempDir(), "gateway.jsonl"), now: at("00:00:00"), while: map[string]func(){}}
	var err error
	if n.db, err = openDB(ledger, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(n.db.Read.Close(), closeOther(n.db)) })
	g, err := gateway.New(gateway.Options{Book: n.book, Now: n.clock})
	if err != nil {
		t.Fatal(err)
	}
	n.far = httptest.NewServer(g)
	t.Cleanup(func() { n.far.Close(); _ = g.Close() })
	n.process()
	n.run()
	if _, err := n.db.Write.ExecContext(t.Context(), `CREATE TABLE shop_extended (key TEXT NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *night) clock() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now
}

func (n *night) set(t time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.now = t
}

// process starts a new one on the ledger.
func (n *night) process() {
	n.t.Helper()
	e, err := engine.Open(n.t.Context(), n.db, engine.Options{App: "shop", ByHand: true, Now: n.clock, Boot: func() time.Duration { return n.clock().Sub(at("00:00:00")) },
		Log: slog.New(slog.NewTextHandler(n.t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = e.Close() })
	e.Handle(daybook.Job{Name: "renew", Owner: "ops", Priority: daybook.P0, Schedule: "0 2 * * *", Timezone: "Europe/Berlin", Window: daybook.Day,
		Effects: daybook.Once, Steps: true, Serial: "gateway"}, n.renew, daybook.Subjects(n.due))
	n.worker = e
}

// run does what is due. A process that is killed meanwhile writes nothing more.
func (n *night) run() {
	n.t.Helper()
	ctx, kill := context.WithCancel(n.t.Context())
	defer kill()
	n.kill = kill
	if err := n.worker.RunDue(ctx); err != nil && ctx.Err() == nil {
		n.t.Fatalf("%s: %v", n.clock().Format(time.TimeOnly), err)
	}
}

// subscription is one that is due.
type subscription struct {
	ID    string
	Cents int
}

// due lists them; it takes a second.
func (n *night) due(_ context.Context, w daybook.Window) iter.Seq2[daybook.Subject, error] {
	return func(yield func(daybook.Subject, error) bool) {
		if w.Date == nightDay {
			n.set(at("01:00:01"))
		}
		for _, id := range subscriptions() {
			if !yield(daybook.Subject{ID: id, Payload: subscription{id, demoCents}}, nil) {
				return
			}
		}
	}
}

// renew is the work: charge, then extend.
func (n *night) renew(ctx context.Context, r *daybook.Run) error {
	var s subscription
	if err := r.Payload(&s); err != nil {
		return err
	}
	if _, err := daybook.Effect(ctx, r, "charge", daybook.EffectOf[gateway.Charge]{
		Do: func(ctx context.Context, wireKey string) (gateway.Charge, error) {
			return n.charge(ctx, s, r.Window.Date, wireKey)
		},
		Probe: n.find,
	}); err != nil {
		return err
	}
	tx, err := n.db.Write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if done, err := daybook.StepTx(ctx, tx, r, "extend"); done || err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO shop_extended (key) VALUES ('%s')`, r.Key)); err != nil {
		return err
	}
	return tx.Commit()
}

func (n *night) charge(ctx context.Context, s subscription, day, wireKey string) (c gateway.Charge, err error) {
	body := fmt.Sprintf(`{"customer":%q,"day":%q,"amount":%d,"currency":"EUR"}`, s.ID, day, s.Cents)
	status, said := n.ask(http.MethodPost, "/charges", wireKey, body)
	if happens := n.while[wireKey]; happens != nil {
		delete(n.while, wireKey)
		happens()
	}
	switch {
	case ctx.Err() != nil:
		return c, ctx.Err()
	case status == http.StatusOK:
		return c, json.Unmarshal(said, &c)
	case status == http.StatusPaymentRequired:
		return c, daybook.Permanent(fmt.Errorf("%d %s", status, demoRefusal(status, said)))
	}
	return c, fmt.Errorf("%d %s", status, demoRefusal(status, said))
}

// find asks the gateway, which takes a second.
func (n *night) find(_ context.Context, wireKey string) (c gateway.Charge, answer daybook.Answer, err error) {
	n.set(n.clock().Add(time.Second))
	status, said := n.ask(http.MethodGet, "/charges?key="+url.QueryEscape(wireKey), "", "")
	if status == http.StatusNotFound {
		return c, daybook.No, nil
	}
	return c, daybook.Yes, json.Unmarshal(said, &c)
}

func (n *night) ask(method, path, key, body string) (int, []byte) {
	r, err := http.NewRequestWithContext(n.t.Context(), method, n.far.URL+path, strings.NewReader(body)) // it arrives, whatever becomes of the caller
	if err != nil {
		n.t.Error(err)
		return 0, nil
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	a, err := n.far.Client().Do(r)
	if err != nil {
		n.t.Error(err)
		return 0, nil
	}
	defer a.Body.Close()
	said, err := io.ReadAll(a.Body)
	if err != nil {
		n.t.Error(err)
	}
	return a.StatusCode, said
}

// of returns the run of a subscription; empty: of the whole day.
func (n *night) of(sub string) *daybook.Run {
	n.t.Helper()
	r, err := n.worker.Store().Run(n.t.Context(), demoKey(nightDay, sub))
	if err != nil {
		n.t.Fatal(err)
	}
	return r
}

// stand checks how many runs of subscriptions are in each state.
func (n *night) stand(want map[daybook.State]int) {
	n.t.Helper()
	runs, err := n.worker.Control().Find(n.t.Context(), string(demoKey(nightDay, ""))+"/", demoDue+1)
	if err != nil {
		n.t.Fatal(err)
	}
	got := map[daybook.State]int{}
	for _, r := range runs {
		got[r.State]++
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		n.t.Fatalf("%s: the subscriptions are %v, want %v", n.clock().Format(time.TimeOnly), got, want)
	}
}

// charged checks the gateway's book.
func (n *night) charged(day string, want int) {
	n.t.Helper()
	t, err := gateway.Count(n.book)
	if err != nil {
		n.t.Fatal(err)
	}
	got := 0
	for who, times := range t.ByDay {
		if who.Day == day {
			got += times
		}
	}
	if got != want || t.Twice != 0 {
		n.t.Errorf("%s: due %d, charged %d, twice %d; want %d charges", n.clock().Format(time.TimeOnly), demoDue, got, t.Twice, want)
	}
}

// trigger asks for the day as one of the doors does.
func (n *night) trigger(source daybook.Source, who string) control.Answer {
	n.t.Helper()
	a, err := n.worker.Control().Trigger(n.t.Context(), control.Person{Name: who, Source: source}, control.Request{Job: "renew", Window: nightDay, Source: source})
	if err != nil {
		n.t.Fatal(err)
	}
	return a
}

// untilDeclined plays the night as far as 01:00:37Z, row by row.
func (n *night) untilDeclined() {
	n.t.Helper()
	charge := func(sub string) string { return string(demoKey(nightDay, sub)) + "#charge" }

	// 01:00:00Z: 02:00 does not exist; it fires at 03:00 local. 01:00:01Z: sub_07 is charged, and the gateway is slow.
	// 01:00:05Z: a deployment kills the process, and nothing is written.
	n.while[charge("sub_07")] = func() {
		n.set(at("01:00:05"))
		n.kill()
		select {} // a process that was killed does nothing more
	}
	n.ask(http.MethodPost, "/cards", "", `{"customer":"sub_13","ok":false}`)
	n.set(at("01:00:00"))
	n.run()
	if got := n.clock(); !got.Equal(at("01:00:05")) {
		n.t.Fatalf("sub_07 was not killed: it is %s", got)
	}
	triggers, err := n.worker.Store().Triggers(n.t.Context(), demoKey(nightDay, ""))
	if err != nil || len(triggers) != 1 || triggers[0].Source != daybook.SourceSchedule || triggers[0].Outcome != daybook.Started || !triggers[0].At.Equal(at("01:00:00")) {
		n.t.Errorf("the schedule: %+v %v", triggers, err)
	}
	n.stand(map[daybook.State]int{daybook.Done: 6, daybook.Running: 1, daybook.Scheduled: 13})
	step := n.of("sub_07").StepRecord("charge")
	if step == nil || step.State != daybook.EffectBegun || step.WireKey() != charge("sub_07") {
		n.t.Fatalf("sub_07: %+v", step)
	}
	fence := n.of("sub_07").Fence
	n.charged(nightDay, 7)

	// 01:00:20Z: a new process; the platform triggers again.
	n.set(at("01:00:20"))
	n.process()
	if a := n.trigger(daybook.SourceAPI, "platform"); a.Outcome != daybook.Joined {
		n.t.Errorf("the platform: %s: %s", a.Outcome, a.Line())
	}
	n.run()
	n.stand(map[daybook.State]int{daybook.Done: 6, daybook.Running: 1, daybook.Scheduled: 13}) // whoever would overtake sub_07 waits
	n.charged(nightDay, 7)

	// 01:00:35Z: the lease is over. 01:00:36Z: the probe. 01:00:37Z: sub_13 is declined, and the other 19 go on.
	n.while[charge("sub_13")] = func() { n.set(at("01:00:37")) }
	n.set(at("01:00:35"))
	n.run()
	step = n.of("sub_07").StepRecord("charge")
	if step.State != daybook.EffectDone || step.SettledBy != "probe" || step.Tries != 1 || !step.EndedAt.Equal(at("01:00:35")) ||
		step.WireKey() != charge("sub_07") || !strings.Contains(string(step.Data), `"ch_007"`) || step.Fence != fence {
		n.t.Errorf("sub_07: %+v %s", step, step.Data)
	}
	n.stand(map[daybook.State]int{daybook.Done: 19, daybook.Dead: 1})
	dead := n.of("sub_13")
	if dead.State != daybook.Dead || dead.Letter.Kind != daybook.LetterFailed || !dead.EndedAt.Equal(at("01:00:37")) || !strings.Contains(dead.LastError, "402 card_declined") {
		n.t.Errorf("sub_13: %s %s: %s", dead.State, dead.EndedAt, dead.LastError)
	}
	n.charged(nightDay, 19)
	alerts, err := n.worker.Control().Alerts(n.t.Context(), true, 10)
	if err != nil || len(alerts) != 1 || alerts[0].Kind != daybook.AlertDeadLetter {
		n.t.Errorf("alerts: %+v %v", alerts, err)
	}
}

// TestTheNightOf29March is DESIGN's example row by row: what happened to a shop, and what is to happen instead.
func TestTheNightOf29March(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		n := newNight(t, ledger)
		n.untilDeclined()

		// 06:58Z: the owner clicks run now.
		n.set(at("06:58:00"))
		n.run()
		if a := n.trigger(daybook.SourceManual, "ops"); a.Outcome != daybook.Refused || !strings.Contains(a.Line(), "19 done") || !strings.Contains(a.Line(), "1 open letter") {
			t.Errorf("the owner: %s: %s", a.Outcome, a.Line())
		}
		n.run()
		n.charged(nightDay, 19)

		// 07:10Z: the card is changed; replay of sub_13.
		n.set(at("07:10:00"))
		n.ask(http.MethodPost, "/cards", "", `{"customer":"sub_13","ok":true}`)
		if _, err := n.worker.Control().Replay(t.Context(), control.Person{Name: "ops"}, []daybook.Key{demoKey(nightDay, "sub_13")}, "card changed"); err != nil {
			t.Fatal(err)
		}
		n.run()
		n.stand(map[daybook.State]int{daybook.Done: 20})
		if step := n.of("sub_13").StepRecord("charge"); step.WireKey() != "renew:2026-03-29/sub_13#charge@2" || step.State != daybook.EffectDone {
			t.Errorf("sub_13: %+v", step)
		}
		if r := n.of(""); r.State != daybook.Done || !r.EndedAt.Equal(at("07:10:00")) {
			t.Errorf("the day is %s (%s) since %s", r.State, r.Reason, r.EndedAt)
		}
		n.charged(nightDay, 20)
		n.extended(20)
		n.tells(nightStory)
	})
}

// A letter is no reason to leave the next day out.
func TestTheNextNightDoesNotWaitForALetter(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, ledger string) {
		n := newNight(t, ledger)
		n.untilDeclined()
		n.set(time.Date(2026, 3, 30, 0, 0, 0, 0, time.UTC)) // 02:00 in Berlin
		n.ask(http.MethodPost, "/cards", "", `{"customer":"sub_13","ok":true}`)
		n.run()
		n.stand(map[daybook.State]int{daybook.Done: 19, daybook.Dead: 1})
		if r := n.of(""); !r.State.Live() {
			t.Errorf("29 March is %s", r.State)
		}
		n.charged("2026-03-30", 20)
		if r, err := n.worker.Store().Run(t.Context(), demoKey("2026-03-30", "")); err != nil || r.State != daybook.Done {
			t.Errorf("30 March: %v %v", r, err)
		}
	})
}

// extended checks the shop's own table.
func (n *night) extended(want int) {
	n.t.Helper()
	var rows, keys int
	if err := n.db.Read.QueryRowContext(n.t.Context(), `SELECT COUNT(*), COUNT(DISTINCT key) FROM shop_extended`).Scan(&rows, &keys); err != nil {
		n.t.Fatal(err)
	}
	if rows != want || keys != want {
		n.t.Errorf("%d subscriptions were extended, %d times; want %d", keys, rows, want)
	}
}

// tells checks what key show says of the day.
func (n *night) tells(want string) {
	n.t.Helper()
	var out, errs bytes.Buffer
	a := testApp(&out, &errs)
	a.Now = n.clock
	if code := a.run(n.t.Context(), []string{"key", "show", string(demoKey(nightDay, "")), "--db", n.ledger}); code != 0 {
		n.t.Fatalf("exit %d: %s", code, errs.String())
	}
	got := regexp.MustCompile(`al_\d+`).ReplaceAllString(out.String(), "al_N")
	if strings.TrimSpace(got) != strings.TrimSpace(want) {
		n.t.Errorf("key show says\n%s\nwant\n%s", got, want)
	}
}

// nightStory is what is told of the night, line by line.
const nightStory = `
renew:2026-03-29  P0  ✓ done 2026-03-29 09:10:00 Europe/Berlin  20 of 20 subjects
  window 2026-03-29 00:00→24:00 Europe/Berlin (23 h)
  03:00:00  schedule → started              02:00 does not exist, fired at the end of the gap
  03:00:20  api, platform → joined
  03:00:36  /sub_07  charge done ch_007     begun 03:00:01, worker lost, unknown 03:00:35, probe: yes
  03:00:37  /sub_13  charge not done        402 card_declined: the card of sub_13 was declined → dead letter, alert al_N
  08:58:00  manual, ops → refused           19 done, 1 open letter: replay it
  09:10:00  /sub_13  replay, ops → started  wire key renew:2026-03-29/sub_13#charge@2 → done ch_021
`
