package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// envMain makes this test binary a gateway.
const envMain = "GATEWAY_MAIN"

func TestMain(m *testing.M) {
	if args := os.Getenv(envMain); args != "" {
		if err := Main(context.Background(), strings.Fields(args), nil, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// far is a gateway with its book and a clock that is moved by hand.
type far struct {
	t    *testing.T
	g    *Gateway
	srv  *httptest.Server
	book string
	mu   sync.Mutex
	now  time.Time
}

func newFar(t *testing.T) *far {
	f := &far{t: t, book: filepath.Join(t.TempDir(), "gateway.jsonl"), now: time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)}
	f.start()
	t.Cleanup(f.stop)
	return f
}

func (f *far) start() {
	f.t.Helper()
	var err error
	if f.g, err = New(Options{Book: f.book, Now: f.clock}); err != nil {
		f.t.Fatal(err)
	}
	f.srv = httptest.NewServer(f.g)
	// Go's client repeats a request with an Idempotency-Key by itself when a kept connection breaks.
	f.srv.Client().Transport.(*http.Transport).DisableKeepAlives = true
}

func (f *far) stop() {
	f.g.Close()
	f.srv.Close()
}

// restart is what a crash comes to: everything that is not in the book is forgotten.
func (f *far) restart() {
	f.t.Helper()
	f.stop()
	f.start()
}

func (f *far) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *far) later(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

// reply is what a caller saw.
type reply struct {
	status   int // 0: no answer
	replayed bool
	body     string
	Charge
	Error struct{ Type, Code, Message string }
}

func call(client *http.Client, method, url, key string, body any) (r reply) {
	text, _ := json.Marshal(body)
	req, err := http.NewRequest(method, url, bytes.NewReader(text))
	if err != nil {
		return reply{body: err.Error()}
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := client.Do(req)
	if err != nil {
		return reply{body: err.Error()}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{body: err.Error()}
	}
	json.Unmarshal(b, &r) // a proxy's page is no JSON
	r.status, r.body, r.replayed = res.StatusCode, string(b), res.Header.Get("Idempotent-Replayed") == "true"
	return r
}

type m = map[string]any

func (f *far) post(path, key string, body m) reply {
	return call(f.srv.Client(), "POST", f.srv.URL+path, key, body)
}

func (f *far) get(path string) reply { return call(f.srv.Client(), "GET", f.srv.URL+path, "", nil) }

func (f *far) charge(key, customer string) reply {
	return f.post("/charges", key, m{"customer": customer, "amount": 1500, "currency": "EUR"})
}

func (f *far) fault(body m) {
	f.t.Helper()
	if r := f.post("/faults", "", body); r.status != http.StatusNoContent {
		f.t.Fatalf("POST /faults %v: %d %s", body, r.status, r.body)
	}
}

func (f *far) card(customer string, ok bool) {
	f.t.Helper()
	if r := f.post("/cards", "", m{"customer": customer, "ok": ok}); r.status != http.StatusNoContent {
		f.t.Fatalf("POST /cards: %d %s", r.status, r.body)
	}
}

func (f *far) expect(what string, r reply, status int, contains string) {
	f.t.Helper()
	if r.status != status || !strings.Contains(r.body, contains) {
		f.t.Errorf("%s: %d %s, want %d and %q", what, r.status, r.body, status, contains)
	}
}

// tally checks what the book comes to.
func (f *far) tally(charges, twice int) Tally {
	f.t.Helper()
	n, err := Count(f.book)
	if err != nil {
		f.t.Fatal(err)
	}
	if n.Charges != charges || n.Twice != twice {
		f.t.Errorf("the book has %d charges, %d of them twice; want %d and %d", n.Charges, n.Twice, charges, twice)
	}
	return n
}

// eventually waits for something that happens in real time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestARepeatedKeyGetsTheSavedAnswer(t *testing.T) {
	f := newFar(t)
	first := f.charge("k1", "sub_07")
	f.expect("first", first, 200, `"id":"ch_001"`)
	f.restart()
	again := f.charge("k1", "sub_07")
	if again.status != 200 || !again.replayed || again.body != first.body {
		t.Errorf("again: %+v, want what was said first: %+v", again, first)
	}
	f.expect("another key", f.charge("k2", "sub_08"), 200, `"id":"ch_002"`)
	if n := f.tally(2, 0); n.Requests != 3 || n.Amounts["EUR"] != 3000 {
		t.Errorf("tally %+v, want 3 requests and 3000 EUR", n)
	}
}

func TestAKeyWithOtherParametersIsRefused(t *testing.T) {
	f := newFar(t)
	f.charge("k1", "sub_07")
	for _, body := range []m{
		{"customer": "sub_08", "amount": 1500, "currency": "EUR"},
		{"customer": "sub_07", "amount": 1501, "currency": "EUR"},
		{"customer": "sub_07", "amount": 1500, "currency": "USD"},
		{"customer": "sub_07", "amount": 1500, "currency": "EUR", "day": "2026-03-29"},
	} {
		f.expect(fmt.Sprint(body), f.post("/charges", "k1", body), 400, "idempotency_error")
	}
	f.expect("another path", f.post("/refunds", "k1", m{"charge": "ch_001"}), 400, "idempotency_error")
	f.expect("the same", f.charge("k1", "sub_07"), 200, "ch_001")
	f.tally(1, 0)
}

func TestARefusalIsSavedToo(t *testing.T) {
	f := newFar(t)
	f.card("sub_13", false)
	f.expect("declined", f.charge("k1", "sub_13"), 402, "card_declined")
	f.card("sub_13", true)
	f.restart()
	f.expect("same key, good card", f.charge("k1", "sub_13"), 402, "card_declined")
	f.expect("probe", f.get("/charges?key=k1"), 404, "nothing under key")
	f.expect("next key", f.charge("k1@2", "sub_13"), 200, Charged)
	f.expect("probe", f.get("/charges?key=k1@2"), 200, `"key":"k1@2"`)
	if n := f.tally(1, 0); n.Declined != 1 {
		t.Errorf("declined %d, want 1", n.Declined)
	}
}

func TestACardStaysBadOverARestart(t *testing.T) {
	f := newFar(t)
	f.card("sub_13", false)
	f.restart()
	f.expect("declined", f.charge("k1", "sub_13"), 402, "card_declined")
}

func TestAFailureIsSavedOnceItBegan(t *testing.T) {
	f := newFar(t)
	f.fault(m{"fault": "failure"})
	f.expect("first", f.charge("k1", "sub_07"), 500, "api_error")
	f.restart()
	f.expect("again", f.charge("k1", "sub_07"), 500, "api_error")
	f.expect("other parameters", f.charge("k1", "sub_08"), 400, "idempotency_error")
	f.expect("probe", f.get("/charges?key=k1"), 404, "")
	f.expect("another key", f.charge("k2", "sub_07"), 200, "ch_001")
	f.tally(1, 0)
}

func TestNothingIsSavedBeforeItBegan(t *testing.T) {
	for kind, status := range map[FaultKind]int{Unavailable: 503, TimeoutBefore: 504, ResetBefore: 0} {
		f := newFar(t)
		f.fault(m{"fault": kind})
		f.expect(string(kind), f.charge("k1", "sub_07"), status, "")
		f.expect("probe", f.get("/charges?key=k1"), 404, "")
		f.expect("again", f.charge("k1", "sub_07"), 200, "ch_001")
		f.tally(1, 0)
	}
	f := newFar(t)
	for _, body := range []m{
		{"amount": 1500, "currency": "EUR"},
		{"customer": "sub_07", "currency": "EUR"},
		{"customer": "sub_07", "amount": -1, "currency": "EUR"},
		{"customer": "sub_07", "amount": 1.5, "currency": "EUR"},
		{"customer": "sub_07", "amount": 1500, "currency": "€"},
		{"customer": "sub_07", "amount": 1500, "currency": "EUR", "note": "unknown"},
	} {
		f.expect(fmt.Sprint(body), f.post("/charges", "k1", body), 400, "invalid_request_error")
	}
	f.expect("a long key", f.charge(strings.Repeat("k", 256), "sub_07"), 400, "longer than 255")
	f.expect("at last", f.charge("k1", "sub_07"), 200, "ch_001")
}

func TestTheMoneyMovesThoughTheAnswerIsLost(t *testing.T) {
	for kind, status := range map[FaultKind]int{TimeoutAfter: 504, ResetAfter: 0} {
		f := newFar(t)
		f.fault(m{"fault": kind, "customer": "sub_07"})
		f.expect("another customer", f.charge("k0", "sub_01"), 200, "ch_001")
		r := f.charge("k1", "sub_07")
		f.expect(string(kind), r, status, "")
		if strings.Contains(r.body, "ch_002") {
			t.Errorf("%s: the caller learns the charge: %s", kind, r.body)
		}
		f.expect("probe", f.get("/charges?key=k1"), 200, "ch_002")
		f.expect("again", f.charge("k1", "sub_07"), 200, "ch_002")
		f.tally(2, 0)
	}
}

func TestASlowAnswerIsInProgressAndBooked(t *testing.T) {
	f := newFar(t)
	f.fault(m{"fault": "slow", "delay": "1h"})
	first := make(chan reply, 1)
	go func() { first <- f.charge("k1", "sub_07") }()
	eventually(t, "booked", func() bool { return f.get("/charges?key=k1").status == 200 })
	f.expect("meanwhile", f.charge("k1", "sub_07"), 409, "idempotency_key_in_use")
	f.expect("with other parameters", f.charge("k1", "sub_08"), 400, "idempotency_error")
	f.expect("another key", f.charge("k2", "sub_08"), 200, "ch_002")
	f.g.Close() // ends the wait
	f.expect("at last", <-first, 200, "ch_001")
	f.srv.Close()
	f.start()
	f.expect("again", f.charge("k1", "sub_07"), 200, "ch_001")
	f.tally(2, 0)
}

func TestDeletedFaultsLetSlowAnswersGo(t *testing.T) {
	f := newFar(t)
	f.fault(m{"fault": "slow", "delay": "1h", "times": 2})
	first := make(chan reply, 1)
	go func() { first <- f.charge("k1", "sub_07") }()
	eventually(t, "booked", func() bool { return f.get("/charges?key=k1").status == 200 })
	if r := call(f.srv.Client(), "DELETE", f.srv.URL+"/faults", "", nil); r.status != http.StatusNoContent {
		t.Errorf("delete: %d", r.status)
	}
	f.expect("at last", <-first, 200, "ch_001")
	f.expect("the next", f.charge("k2", "sub_08"), 200, "ch_002")
	f.tally(2, 0)
}

func TestALateChargeComesAfterTheCallerHasGone(t *testing.T) {
	f := newFar(t)
	f.fault(m{"fault": "late", "delay": "300ms"})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", f.srv.URL+"/charges", strings.NewReader(`{"customer":"sub_07","amount":1,"currency":"EUR"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "k1")
	go func() {
		eventually(t, "arrived", func() bool { n, _ := Count(f.book); return n.Requests == 1 })
		cancel()
	}()
	if res, err := f.srv.Client().Do(req); err == nil {
		res.Body.Close()
		t.Error("the caller was answered")
	}
	f.expect("an early probe", f.get("/charges?key=k1"), 404, "")
	eventually(t, "charged", func() bool { return f.get("/charges?key=k1").status == 200 })
	f.tally(1, 0)
}

func TestFaultsHitWhatTheyAreMeantFor(t *testing.T) {
	f := newFar(t)
	f.fault(m{"fault": "unavailable", "customer": "sub_03", "times": 2})
	f.fault(m{"fault": "unavailable", "request": 3})
	f.fault(m{"fault": "failure", "customer": "sub_04", "request": 2})
	want := []int{503, 200, 503, 503, 200, 200, 500, 200}
	for i, customer := range []string{"sub_03", "sub_01", "sub_01", "sub_03", "sub_03", "sub_04", "sub_04", "sub_04"} {
		f.expect(fmt.Sprint("request ", i+1), f.charge(fmt.Sprint("k", i), customer), want[i], "")
	}
	f.fault(m{"fault": "unavailable", "times": -1})
	for range 3 {
		f.expect("all", f.charge("x", "sub_05"), 503, "")
	}
	if r := call(f.srv.Client(), "DELETE", f.srv.URL+"/faults", "", nil); r.status != http.StatusNoContent {
		t.Error(r)
	}
	f.expect("none", f.charge("x", "sub_05"), 200, "")
	f.expect("no such fault", f.post("/faults", "", m{"fault": "sloww"}), 400, "no such fault")
	f.expect("no duration", f.post("/faults", "", m{"fault": "slow", "delay": 5}), 400, "JSON")
}

func TestKeysAreForgotten(t *testing.T) {
	f := newFar(t)
	f.charge("k1", "sub_07")
	f.later(24*time.Hour - time.Second)
	f.expect("a day later, nearly", f.charge("k1", "sub_07"), 200, "ch_001")
	f.later(time.Second)
	f.restart()
	f.expect("a day later", f.charge("k1", "sub_07"), 200, "ch_002")
	f.expect("from then on", f.charge("k1", "sub_07"), 200, "ch_002")
	f.expect("a probe finds what moved money last", f.get("/charges?key=k1"), 200, "ch_002")
	// A key that was forgotten is free for anything.
	f.later(25 * time.Hour)
	f.expect("another customer", f.charge("k1", "sub_08"), 200, "ch_003")
	f.tally(3, 0) // three different days and customers
}

func TestWithoutKeysEveryRequestCharges(t *testing.T) {
	f := newFar(t)
	for range 3 {
		for i := range 20 {
			f.expect("charge", f.charge("", fmt.Sprintf("sub_%02d", i)), 200, "")
		}
	}
	if n := f.tally(60, 40); n.ByDay[CustomerDay{"sub_07", "2026-03-29"}] != 3 {
		t.Errorf("sub_07 was charged %d times, want 3", n.ByDay[CustomerDay{"sub_07", "2026-03-29"}])
	}
}

func TestTheBusinessDayIsTheCallers(t *testing.T) {
	f := newFar(t)
	for _, day := range []string{"2026-03-28", "2026-03-29", "2026-03-29"} {
		f.post("/charges", "", m{"customer": "sub_07", "amount": 1, "currency": "EUR", "day": day})
	}
	f.tally(3, 1)
	f.expect("list", f.get("/charges?customer=sub_07&day=2026-03-28"), 200, `"id":"ch_001"`)
	if r := f.get("/charges?day=2026-03-28"); strings.Contains(r.body, "ch_002") {
		t.Errorf("the list has other days: %s", r.body)
	}
	f.expect("an empty list", f.get("/charges?customer=nobody"), 200, `"data":[]`)
}

func TestMoneyIsGivenBackOnce(t *testing.T) {
	f := newFar(t)
	f.charge("k1", "sub_07")
	f.expect("no such charge", f.post("/refunds", "u0", m{"charge": "ch_009"}), 404, "no such charge")
	f.expect("refund", f.post("/refunds", "u1", m{"charge": "ch_001"}), 200, `"id":"re_001"`)
	f.restart()
	f.expect("again", f.post("/refunds", "u1", m{"charge": "ch_001"}), 200, `"id":"re_001"`)
	f.expect("other key", f.post("/refunds", "u2", m{"charge": "ch_001"}), 400, "charge_already_refunded")
	f.expect("other key again", f.post("/refunds", "u2", m{"charge": "ch_001"}), 400, "charge_already_refunded")
	f.expect("probe", f.get("/refunds?key=u1"), 200, `"charge":"ch_001"`)
	f.expect("probe", f.get("/refunds?key=u2"), 404, "")
	if n := f.tally(1, 0); n.Refunds != 1 || n.Amounts["EUR"] != 0 || n.Requests != 1 {
		t.Errorf("tally %+v", n)
	}
}

func TestTheClockIsSetAndKept(t *testing.T) {
	f := newFar(t)
	f.expect("set", f.post("/clock", "", m{"now": "2030-01-01T00:00:00Z", "rate": 60}), 204, "")
	f.later(time.Minute)
	f.restart()
	f.expect("an hour later", f.charge("k1", "sub_07"), 200, `"created":"2030-01-01T01:00:00Z"`)
	f.later(24 * time.Minute)
	f.expect("a day later", f.charge("k1", "sub_07"), 200, "ch_002")
}

func TestManyAtOnceUnderOneKey(t *testing.T) {
	f := newFar(t)
	var all sync.WaitGroup
	got := make([][]reply, 20)
	for i := range got {
		all.Go(func() {
			for range 5 {
				got[i] = append(got[i], f.charge(fmt.Sprint("k", i%2), fmt.Sprint("sub_", i%2)))
			}
		})
	}
	all.Wait()
	fresh := 0
	for _, rs := range got {
		for _, r := range rs {
			switch {
			case r.status == 200 && !r.replayed:
				fresh++
			case r.status != 200 && r.status != 409:
				t.Errorf("%d %s", r.status, r.body)
			}
		}
	}
	if fresh != 2 {
		t.Errorf("%d charges were answered as new, want 2", fresh)
	}
	if n := f.tally(2, 0); n.Requests != 100 {
		t.Errorf("%d requests in the book, want 100", n.Requests)
	}
}

func TestHalfALineDidNotHappen(t *testing.T) {
	f := newFar(t)
	f.charge("k1", "sub_07")
	f.stop()
	b, err := os.OpenFile(f.book, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(b, `{"ts":"2026-03-29T01:00:00Z","kind":"charge","id":"ch_0`)
	b.Close()
	f.tally(1, 0) // a reader leaves it out
	f.start()
	f.expect("next", f.charge("k2", "sub_08"), 200, "ch_002")
	f.tally(2, 0)
}

func TestABrokenBookIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.jsonl")
	if err := os.WriteFile(path, []byte("{}\nnonsense\n{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Book: path}); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("New: %v, want line 2 named", err)
	}
	if _, err := Count(path); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("Count: %v, want line 2 named", err)
	}
	if n, err := Count(path + ".none"); err != nil || n.Charges != 0 {
		t.Errorf("Count of no book: %+v, %v", n, err)
	}
}

// TestAKilledGatewayKeepsItsBook kills a real process again and again while it is asked to charge.
func TestAKilledGatewayKeepsItsBook(t *testing.T) {
	book := filepath.Join(t.TempDir(), "gateway.jsonl")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answered := map[string]string{} // key → charge
	for round := range 4 {
		cmd, url := startMain(t, "-book "+book)
		for key, id := range answered {
			if r := chargeOnce(client, url, key); r.status != 200 || r.ID != id {
				t.Fatalf("round %d, key %s: %d %s, want %s again", round, key, r.status, r.body, id)
			}
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		for w := range 4 {
			all.Go(func() {
				for i := 0; ; i++ {
					key := fmt.Sprintf("r%d-w%d-%d", round, w, i)
					r := chargeOnce(client, url, key)
					if r.status != 200 {
						return // killed
					}
					mu.Lock()
					answered[key] = r.ID
					if len(answered) == 40*(round+1) {
						cmd.Process.Kill()
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		cmd.Wait()
	}
	n, err := Count(book)
	if err != nil {
		t.Fatal(err)
	}
	// Up to four charges a round were booked and not answered.
	if n.Twice != 0 || n.Charges < len(answered) || n.Charges > len(answered)+16 {
		t.Errorf("the book has %d charges, %d twice; %d were answered", n.Charges, n.Twice, len(answered))
	}
}

func chargeOnce(client *http.Client, url, key string) reply {
	return call(client, "POST", url+"/charges", key, m{"customer": key, "amount": 1, "currency": "EUR"})
}

// startMain starts a gateway as a process of its own.
func startMain(t *testing.T, args string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envMain+"="+args)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		t.Fatalf("the gateway said %q, %v", line, err)
	}
	return cmd, url
}

func TestMainEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Main(ctx, []string{"-book", filepath.Join(t.TempDir(), "b")}, nil, in) }()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := Main(ctx, []string{"extra"}, nil, io.Discard); err == nil {
		t.Error("an argument is accepted")
	}
}
