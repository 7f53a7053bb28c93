package daybooktest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/daybooktest"
	"github.com/daybook-run/daybook/engine"
)

func instant(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

// fan is a job with subjects, and a far side that keeps a book.
type fan struct {
	mu      sync.Mutex
	due     []daybook.Subject
	failing func(subject string) error
	listErr error
	book    map[daybook.Key]int
	lists   int
	during  func(i int) // while the i-th is named
}

func (s *fan) list(ctx context.Context, w daybook.Window) iter.Seq2[daybook.Subject, error] {
	return func(yield func(daybook.Subject, error) bool) {
		s.mu.Lock()
		s.lists++
		due, fault, during := s.due, s.listErr, s.during
		s.mu.Unlock()
		for i, d := range due {
			if during != nil {
				during(i)
			}
			if !yield(d, nil) {
				return
			}
		}
		if fault != nil {
			yield(daybook.Subject{}, fault)
		}
	}
}

func (s *fan) work(_ context.Context, r *daybook.Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing != nil {
		if err := s.failing(r.Subject); err != nil {
			return err
		}
	}
	s.book[r.Key]++
	r.Count("charges", 1)
	return nil
}

func (s *fan) set(failing func(string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = failing
}

func (s *fan) charged() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.book {
		n += c
	}
	return n
}

func subs(n int) []daybook.Subject {
	list := make([]daybook.Subject, n)
	for i := range list {
		list[i] = daybook.Subject{ID: fmt.Sprintf("sub_%02d", i+1), Payload: map[string]any{"cents": 1500}}
	}
	return list
}

func newFan(t *testing.T, db engine.DB, n int, change ...func(*daybook.Job)) (*daybooktest.Engine, *fan) {
	t.Helper()
	s := &fan{due: subs(n), book: make(map[daybook.Key]int)}
	e := daybooktest.New(t, db)
	j := daybook.Job{Name: "renew", Owner: "ops", Effects: daybook.Repeatable, Schedule: "0 2 * * *", Timezone: "Europe/Berlin", Window: daybook.Day,
		Retry: daybook.Retry{Backoff: []time.Duration{time.Minute, 5 * time.Minute, 25 * time.Minute}, Jitter: -1}}
	for _, c := range change {
		c(&j)
	}
	e.Handle(j, s.work, daybook.Subjects(s.list))
	return e, s
}

func counts(t *testing.T, e *daybooktest.Engine, k daybook.Key) daybook.SubjectCounts {
	t.Helper()
	n, err := e.Store().Subjects(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func standsAs(t *testing.T, e *daybooktest.Engine, k daybook.Key, state daybook.State, reason daybook.Reason) *daybook.Run {
	t.Helper()
	r := find(t, e, k)
	if r.State != state || r.Reason != reason {
		t.Fatalf("%s is %s (%s), hold %q: %s; want %s (%s)", k, r.State, r.Reason, r.Hold, r.LastError, state, reason)
	}
	return r
}

func ask(t *testing.T, e *daybooktest.Engine, window string) control.Answer {
	t.Helper()
	a, err := e.Control().Trigger(t.Context(), control.Person{Name: "ops"}, control.Request{Job: "renew", Window: window})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestEachSubjectIsDoneOnce(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 20)
		e.At(instant("2026-03-29T00:00:00Z"))
		e.At(instant("2026-03-29T01:00:00Z"))
		r := standsAs(t, e, "renew:2026-03-29", daybook.Done, "")
		if r.Counts["charges"] != 20 || s.charged() != 20 {
			t.Errorf("counted %v, the book has %d", r.Counts, s.charged())
		}
		c := find(t, e, "renew:2026-03-29/sub_07")
		if c.State != daybook.Done || c.Parent != r.Key || c.FirstSource != daybook.SourceSchedule || string(c.Input) != `{"cents":1500}` {
			t.Errorf("child: %+v", c)
		}
		if a := ask(t, e, "2026-03-29"); a.Outcome != daybook.Reused || a.Subjects.Of != 20 {
			t.Errorf("asked again: %s %s", a.Outcome, a.Line())
		}
		e.Run()
		if s.charged() != 20 {
			t.Errorf("charged %d times", s.charged())
		}
	})
}

func TestOneDeclinedCardStopsNobody(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 20)
		s.set(func(id string) error {
			if id == "sub_13" {
				return daybook.Permanent(errors.New("402 card_declined"))
			}
			return nil
		})
		e.At(instant("2026-03-29T00:00:00Z"))
		e.At(instant("2026-03-29T02:00:00Z"))
		const k = "renew:2026-03-29"
		if r := standsAs(t, e, k, daybook.Running, daybook.ReasonFannedOut); !r.Rests || !r.Lease.IsZero() {
			t.Errorf("rests %t, lease %v", r.Rests, r.Lease)
		}
		a := ask(t, e, "2026-03-29")
		if a.Outcome != daybook.Refused || a.Exit != 4 || a.HTTP != 409 || a.Subjects.Letters != 1 || a.Subjects.States[daybook.Done] != 19 {
			t.Errorf("asked beside a letter: %+v %s", a.Reply, a.Line())
		}
		t.Log(a.Line(), a.Next())
		alerts, err := e.Store().Alerts(t.Context(), true, 10)
		if err != nil || len(alerts) != 1 || alerts[0].Key != k {
			t.Errorf("alerts: %v %v", alerts, err)
		}

		// The next window starts while the letter is open.
		e.At(instant("2026-03-30T00:30:00Z"))
		if got := find(t, e, "renew:2026-03-30"); got.Attempts != 1 || got.State != daybook.Running {
			t.Errorf("the next window is %s after %d attempts", got.State, got.Attempts)
		}
		s.set(nil)
		answers, err := e.Control().Replay(t.Context(), control.Person{Name: "ops"}, []daybook.Key{k}, "")
		if err != nil || answers[0].Outcome != daybook.Started || answers[0].Replayed != 1 {
			t.Fatalf("replay: %v %v", answers, err)
		}
		e.Run()
		standsAs(t, e, k, daybook.Done, "")
		if s.book["renew:2026-03-29/sub_13"] != 1 || s.charged() != 40-1 {
			t.Errorf("book: %v", s.charged())
		}
		alerts, _ = e.Store().Alerts(t.Context(), true, 10)
		if len(alerts) != 1 || alerts[0].Key != "renew:2026-03-30" {
			t.Errorf("alerts afterwards: %v", alerts)
		}
	})
}

func TestAListingThatBreaksIsDoneAgain(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 1500, func(j *daybook.Job) { j.Effects = daybook.Once })
		s.listErr = errors.New("the connection was reset")
		e.At(instant("2026-03-29T00:00:00Z"))
		e.At(instant("2026-03-29T01:00:30Z"))
		const k = "renew:2026-03-29"
		r := standsAs(t, e, k, daybook.Retryable, daybook.ReasonRetry)
		if n := counts(t, e, k); n.Of == 0 || n.Waiting != n.Of || s.charged() != 0 {
			t.Errorf("half a listing: %+v, charged %d, %s", n, s.charged(), r.LastError)
		}
		s.mu.Lock()
		s.listErr, s.due = nil, append(s.due[100:], daybook.Subject{ID: "late"})
		s.due = append(s.due, s.due[0], daybook.Subject{ID: "late"}) // named twice
		s.mu.Unlock()
		e.At(instant("2026-03-29T01:02:00Z"))
		standsAs(t, e, k, daybook.Done, "")
		n := counts(t, e, k)
		if n.Of != 1501 && n.Of != 1401 || n.Repeated != 2 || n.Vanished != n.Of-1401 || s.charged() != int(n.Of) {
			t.Errorf("%+v, charged %d", n, s.charged())
		}
	})
}

func TestAListingThatNamesNoSubject(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 3)
		s.due = append(s.due, daybook.Subject{}, daybook.Subject{ID: string(make([]byte, 200))})
		e.At(instant("2026-03-29T00:00:00Z"))
		e.At(instant("2026-03-29T01:00:30Z"))
		const k = "renew:2026-03-29"
		r := standsAs(t, e, k, daybook.Dead, "")
		if s.charged() != 3 || r.Letter == nil || r.Letter.State != daybook.LetterOpen {
			t.Errorf("charged %d, letter %+v", s.charged(), r.Letter)
		}
		if !strings.Contains(r.LastError, "no subject: row 4: ") {
			t.Errorf("the row is not named: %s", r.LastError)
		}
		s.mu.Lock()
		s.due = append(s.due[:3], daybook.Subject{ID: "sub_04"})
		s.mu.Unlock()
		if _, err := e.Control().Replay(t.Context(), control.Person{Name: "ops"}, []daybook.Key{k}, "mended"); err != nil {
			t.Fatal(err)
		}
		e.Run()
		standsAs(t, e, k, daybook.Done, "")
		if s.charged() != 4 {
			t.Errorf("charged %d", s.charged())
		}
	})
}

func TestAnOutageUnderManySubjects(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 400)
		const k = "renew:2026-03-29"
		var calls, out int
		s.set(func(id string) error {
			if calls++; calls > 100 && out >= 0 {
				out++
				return daybook.NotDone(errors.New("503 from the gateway for " + id))
			}
			return nil
		})
		e.At(instant("2026-03-29T00:00:00Z"))
		e.At(instant("2026-03-29T01:00:30Z"))
		standsAs(t, e, k, daybook.Running, daybook.ReasonFannedOut)
		n := counts(t, e, k)
		if n.Breaker == nil || n.States[daybook.Done] != 100 || n.Letters != 0 || out > 64+16 {
			t.Fatalf("in the outage: %+v, %d tried in vain", n, out)
		}
		before := out
		e.At(instant("2026-03-29T01:30:00Z"))
		if n := counts(t, e, k); n.Breaker == nil || out != before+2 {
			t.Errorf("two steps of the ladder later %d were tried, %+v", out-before, n)
		}
		e.At(instant("2026-03-29T01:40:00Z"))
		r := standsAs(t, e, k, daybook.Dead, daybook.ReasonBreaker)
		alerts, err := e.Store().Alerts(t.Context(), true, 10)
		if err != nil || len(alerts) != 1 || alerts[0].Kind != daybook.AlertBreakerOpen || alerts[0].Key != k {
			t.Errorf("alerts: %+v %v", alerts, err)
		}
		letters, err := e.Store().Letters(t.Context(), true, 10)
		if err != nil || len(letters) != 1 || letters[0].Key != k || out != before+3 {
			t.Errorf("letters: %+v %v; %d tried; %s", letters, err, out-before, r.LastError)
		}
		// The gateway is back, and a person replays the one letter.
		s.set(nil)
		if _, err := e.Control().Replay(t.Context(), control.Person{Name: "ops"}, []daybook.Key{k}, "it is back"); err != nil {
			t.Fatal(err)
		}
		e.Run()
		standsAs(t, e, k, daybook.Done, "")
		if s.charged() != 400 {
			t.Errorf("charged %d", s.charged())
		}
		if alerts, _ := e.Store().Alerts(t.Context(), true, 10); len(alerts) != 0 {
			t.Errorf("alerts afterwards: %+v", alerts)
		}
	})
}

func TestAnOutageThatEndsByItself(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 60, func(j *daybook.Job) { j.Retry.Backoff = []time.Duration{time.Minute} })
		const k = "renew:2026-03-29"
		tries := 0
		s.set(func(string) error { tries++; return daybook.NotDone(errors.New("connection refused")) })
		e.At(instant("2026-03-29T00:00:00Z"))
		e.At(instant("2026-03-29T01:00:30Z"))
		if n := counts(t, e, k); n.Breaker == nil || tries != 5 {
			t.Errorf("from the start: %d tried, %+v", tries, n)
		}
		s.set(nil)
		e.At(instant("2026-03-29T01:01:30Z"))
		standsAs(t, e, k, daybook.Done, "")
		if s.charged() != 60 {
			t.Errorf("charged %d", s.charged())
		}
	})
}

// The one that the breaker tries may wait for the serial key of another, of which nobody knows whether it happened: that goes on
// too, or neither would ever come to its end.
func TestAnOutageUnderOneSerialKey(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 7, func(j *daybook.Job) {
			j.Effects, j.Priority, j.Serial, j.Remembers = daybook.Once, daybook.P0, "till", 24*time.Hour
		})
		const k = "renew:2026-03-29"
		tries := 0
		s.set(func(string) error {
			if tries++; tries == 5 { // the last that is tried before the breaker opens keeps the key
				return daybook.Unknown(errors.New("503 from the gateway"))
			}
			return daybook.NotDone(errors.New("503 from the gateway"))
		})
		e.At(instant("2026-03-29T00:00:00Z"))
		e.At(instant("2026-03-29T01:00:30Z"))
		if n := counts(t, e, k); n.Breaker == nil || tries != 5 {
			t.Fatalf("%d tried, %+v", tries, n)
		}
		locks, err := e.Store().Locks(t.Context(), 10)
		if err != nil || len(locks) != 1 || !strings.HasPrefix(string(locks[0].Key), k+"/") {
			t.Fatalf("locks: %+v %v", locks, err)
		}
		s.set(nil)
		e.At(instant("2026-03-29T02:00:00Z"))
		standsAs(t, e, k, daybook.Done, "")
		if s.charged() != 7 {
			t.Errorf("charged %d", s.charged())
		}
	})
}

// A window whose breaker is open is dismissed, or cancelled: what failed is not tried again, and what may have happened is settled.
func TestAnOutageThatAPersonEnds(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 9, func(j *daybook.Job) {
			j.Effects, j.Priority, j.Remembers, j.Retry.Backoff = daybook.Once, daybook.P0, 24*time.Hour, []time.Duration{time.Minute}
		})
		const k = "renew:2026-03-29"
		first := ""
		s.set(func(id string) error {
			if first == "" || first == id {
				first = id
				return daybook.Unknown(errors.New("503 from the gateway"))
			}
			return daybook.NotDone(errors.New("503 from the gateway"))
		})
		e.At(instant("2026-03-29T00:00:00Z"))
		e.At(instant("2026-03-29T01:00:30Z"))
		e.At(instant("2026-03-29T01:05:00Z"))
		standsAs(t, e, k, daybook.Dead, daybook.ReasonBreaker)
		s.set(nil)
		if _, err := e.Control().Dismiss(t.Context(), control.Person{Name: "ops"}, k, "seen to by hand"); err != nil {
			t.Fatal(err)
		}
		e.At(instant("2026-03-29T02:00:00Z"))
		n := counts(t, e, k)
		if n.States[daybook.Done] != 1 || n.States[daybook.Cancelled] != 8 || n.UnderWay() != 0 {
			t.Errorf("%+v", n)
		}
		if s.charged() != 1 || s.book[k+"/"+daybook.Key(first)] != 1 {
			t.Errorf("charged %d: %v", s.charged(), s.book)
		}
	})
}

// The letter of the window's run is replayed; that of a subject, of which nobody knows whether it happened, stays announced.
func TestALetterOfASubjectStaysAnnounced(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 12, func(j *daybook.Job) {
			j.Effects, j.Priority, j.Retry.Backoff = daybook.Once, daybook.P0, []time.Duration{}
		})
		const k = "renew:2026-03-29"
		first := true
		s.set(func(string) error {
			if first {
				first = false
				return daybook.Unknown(errors.New("reset by peer"))
			}
			return daybook.NotDone(errors.New("503 from the gateway"))
		})
		announced := func(when string, want ...daybook.AlertKind) {
			t.Helper()
			open, err := e.Store().Alerts(t.Context(), true, 10)
			if err != nil {
				t.Fatal(err)
			}
			var kinds []daybook.AlertKind
			for _, a := range open {
				if a.Key != k {
					t.Errorf("%s: %+v", when, a)
				}
				kinds = append(kinds, a.Kind)
			}
			slices.Sort(kinds)
			if !slices.Equal(kinds, want) {
				t.Errorf("%s: open are %v, want %v", when, kinds, want)
			}
		}
		e.At(instant("2026-03-29T00:00:00Z"))
		e.At(instant("2026-03-29T01:00:30Z"))
		standsAs(t, e, k, daybook.Dead, daybook.ReasonBreaker)
		announced("in the outage", daybook.AlertBreakerOpen, daybook.AlertDeadLetter, daybook.AlertUnknownOutcome)
		s.set(nil)
		person := control.Person{Name: "ops"}
		if _, err := e.Control().Replay(t.Context(), person, []daybook.Key{k}, "it is back"); err != nil {
			t.Fatal(err)
		}
		announced("replayed", daybook.AlertUnknownOutcome)
		e.Run()
		standsAs(t, e, k, daybook.Running, daybook.ReasonFannedOut)
		announced("the others are done", daybook.AlertUnknownOutcome)
		letters, err := e.Store().Letters(t.Context(), true, 10)
		if err != nil || len(letters) != 1 || letters[0].Kind != daybook.LetterUnknown {
			t.Fatalf("letters: %+v %v", letters, err)
		}
		if _, err := e.Control().Resolve(t.Context(), person, letters[0].Key, control.Word{Step: daybook.StepRun, As: daybook.AsNotDone}, "the book does not have it"); err != nil {
			t.Fatal(err)
		}
		e.Run()
		standsAs(t, e, k, daybook.Done, "")
		announced("settled")
		if s.charged() != 12 {
			t.Errorf("charged %d", s.charged())
		}
	})
}

func TestARunWithSubjectsIsCancelled(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 700)
		const k = "renew:2026-03-29"
		s.set(func(string) error { return daybook.NotDone(errors.New("not now")) })
		e.At(instant("2026-03-29T00:00:00Z"))
		e.At(instant("2026-03-29T01:00:30Z"))
		if _, err := e.Control().Cancel(t.Context(), control.Person{Name: "ops"}, k, "wrong list"); err != nil {
			t.Fatal(err)
		}
		e.Run()
		n := counts(t, e, k)
		if n.States[daybook.Cancelled] != 695 || n.States[daybook.Retryable] != 5 {
			t.Errorf("%+v", n)
		}
		standsAs(t, e, k, daybook.Running, daybook.ReasonFannedOut)
		s.set(nil)
		e.At(instant("2026-03-29T02:30:30Z"))
		standsAs(t, e, k, daybook.Cancelled, "")
	})
}

func TestTheWorkerIsLostWhileItLists(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 2500, func(j *daybook.Job) { j.Effects = daybook.Once })
		const k = "renew:2026-03-29"
		e.At(instant("2026-03-29T00:00:00Z"))
		s.mu.Lock()
		s.during = func(i int) {
			if i == 1700 && s.lists == 1 {
				daybooktest.Lose(e)
			}
		}
		s.mu.Unlock()
		e.At(instant("2026-03-29T01:00:00Z"))
		if r := find(t, e, k); r.State != daybook.Running || s.charged() != 0 {
			t.Fatalf("%s %s, charged %d", r.State, r.Reason, s.charged())
		}
		// The server may be at work for the lost worker yet, and what that has locked is passed over.
		for find(t, e, k).State != daybook.Done && t.Context().Err() == nil {
			e.Advance(15 * time.Second)
		}
		if s.charged() != 2500 {
			t.Errorf("charged %d", s.charged())
		}
	})
}

// TestEachZoneAtItsOwnHour: Auckland first, Honolulu last, and whoever moves is done once a date.
func TestEachZoneAtItsOwnHour(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 0, func(j *daybook.Job) { j.Zone, j.Schedule = daybook.ZoneOfSubject, "0 9 * * *" })
		zones := map[string]string{"auckland": "Pacific/Auckland", "berlin": "Europe/Berlin", "denver": "America/Denver", "eastward": "America/Los_Angeles", "twice": "Asia/Tokyo", "late": "", "nowhere": "Mars/Olympus"}
		list := func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.due = s.due[:0]
			for _, id := range slices.Sorted(maps.Keys(zones)) {
				s.due = append(s.due, daybook.Subject{ID: id, Zone: zones[id]})
			}
		}
		list()
		const k = "renew:2026-03-10"
		done := func(want ...string) {
			t.Helper()
			s.mu.Lock()
			defer s.mu.Unlock()
			var got []string
			for key, n := range s.book {
				if n != 1 {
					t.Errorf("%s done %d times", key, n)
				}
				if key.Parts().Window == "2026-03-10" {
					got = append(got, key.Parts().Subject)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s: done %v, want %v", e.Now().Format(time.RFC3339), got, want)
			}
		}
		e.At(instant("2026-03-09T18:30:00Z")) // 2026-03-10 began in Kiritimati, 09:00 there is 19:00Z
		e.At(instant("2026-03-09T19:30:00Z"))
		if r := find(t, e, k); r.Reason != daybook.ReasonNextZone || !r.Due.Equal(instant("2026-03-09T20:00:00Z")) || !r.Rests {
			t.Fatalf("%s (%s) due %s rests %t: %s", r.State, r.Reason, r.Due, r.Rests, r.LastError)
		}
		done()
		e.At(instant("2026-03-09T20:30:00Z")) // 09:00 in Auckland
		done("auckland")
		e.At(instant("2026-03-10T00:30:00Z")) // 09:00 in Tokyo
		done("auckland", "twice")
		zones["twice"] = "Europe/Berlin" // moved west after it was done
		list()
		e.At(instant("2026-03-10T08:30:00Z")) // 09:00 in Berlin; without a zone the job's counts
		done("auckland", "berlin", "late", "twice")
		zones["twice"], zones["eastward"] = "Pacific/Honolulu", "Europe/Berlin" // moved a second time that day; and one moved east, past its hour
		list()
		e.At(instant("2026-03-10T15:30:00Z")) // 09:00 in Denver
		done("auckland", "berlin", "denver", "eastward", "late", "twice")
		e.At(instant("2026-03-10T20:30:00Z"))
		zones["newcomer"] = "Pacific/Niue"
		list()
		e.At(instant("2026-03-10T20:50:00Z"))
		standsAs(t, e, k, daybook.Retryable, daybook.ReasonNextZone)
		e.At(instant("2026-03-10T21:00:30Z")) // once more, when it is 09:00 everywhere
		done("auckland", "berlin", "denver", "eastward", "late", "newcomer", "twice")
		r := standsAs(t, e, k, daybook.Dead, "") // somebody lives nowhere: a person must look
		if n := counts(t, e, k); n.Faulty != 1 || n.Of != 7 {
			t.Errorf("%+v; %s", n, r.LastError)
		}
		if c := find(t, e, k+"/auckland"); c.Zone != "Pacific/Auckland" || !c.Cover.Start.Equal(instant("2026-03-09T11:00:00Z")) || c.Window.Date != "2026-03-10" {
			t.Errorf("%s %v %v", c.Zone, c.Cover, c.Window)
		}
		if next := find(t, e, "renew:2026-03-11"); next.Attempts < 1 {
			t.Errorf("the next date waits: %s", next.State)
		}
	})
}

// The hour of the next zone comes while most of those of the last one wait for their turn, and its listing takes long, or fails:
// they do not wait for it.
func TestWhoseDayHasBegunWaitsForNoListing(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(map[bool]string{false: "it takes long", true: "it fails"}[fails], func(t *testing.T) {
			each(t, func(t *testing.T, db engine.DB) {
				e, s := newFan(t, db, 20, func(j *daybook.Job) { j.Zone, j.Schedule = daybook.ZoneOfSubject, "0 9 * * *" })
				for i := range s.due {
					s.due[i].Zone = "Asia/Tokyo"
				}
				s.due = append(s.due, daybook.Subject{ID: "berlin", Zone: "Europe/Berlin"})
				const k = "renew:2026-03-10"
				berlin := instant("2026-03-10T08:00:30Z") // 09:00 in Berlin
				e.At(instant("2026-03-09T18:30:00Z"))
				s.set(func(string) error {
					daybooktest.SetClock(e, berlin)
					if fails {
						s.listErr = errors.New("connection refused")
					}
					return nil
				})
				s.during = func(i int) {
					if i > 0 || fails || e.Now().Before(berlin) {
						return
					}
					for end := time.Now().Add(20 * time.Second); s.charged() < 20 && time.Now().Before(end); {
						time.Sleep(5 * time.Millisecond)
					}
				}
				e.At(instant("2026-03-10T00:00:30Z")) // 09:00 in Tokyo
				n := 21
				if fails {
					n = 20
					standsAs(t, e, k, daybook.Retryable, daybook.ReasonRetry)
				}
				if s.charged() != n {
					t.Errorf("%d of %d are charged", s.charged(), n)
				}
				for key, n := range s.book {
					if n != 1 {
						t.Errorf("%s is charged %d times", key, n)
					}
				}
			})
		})
	}
}

// A person takes a cancellation back: what was cancelled with the run is done after all, when it is still named. What a person
// had cancelled by itself is not, and nothing is done twice.
func TestACancelledRunWithSubjectsIsReopened(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 700)
		ctx, ops := t.Context(), control.Person{Name: "ops"}
		const k = "renew:2026-03-29"
		s.set(func(string) error { return daybook.NotDone(errors.New("not now")) })
		e.At(instant("2026-03-29T00:00:00Z"))
		e.At(instant("2026-03-29T01:00:30Z"))
		if _, err := e.Control().Cancel(ctx, ops, k+"/sub_700", "moved away"); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Control().Cancel(ctx, ops, k, "wrong list"); err != nil {
			t.Fatal(err)
		}
		s.set(nil)
		e.At(instant("2026-03-29T02:30:30Z"))
		standsAs(t, e, k, daybook.Cancelled, "")
		standsAs(t, e, k+"/sub_700", daybook.Cancelled, "")
		standsAs(t, e, k+"/sub_699", daybook.Cancelled, daybook.ReasonWithWindow)
		if s.charged() != 5 {
			t.Fatalf("charged %d", s.charged())
		}

		// Neither a trigger nor a replay takes it back.
		if a := ask(t, e, "2026-03-29"); a.Outcome != daybook.Refused || a.Exit != 4 {
			t.Errorf("triggered: %s %s", a.Outcome, a.Line())
		}
		if answers, err := e.Control().Replay(ctx, ops, []daybook.Key{k}, ""); err != nil || answers[0].Outcome != daybook.Refused || answers[0].HTTP != 409 {
			t.Errorf("replayed: %v %v", answers, err)
		}
		e.Run()
		if s.charged() != 5 {
			t.Fatalf("charged %d", s.charged())
		}

		s.mu.Lock()
		s.due = append(slices.Clone(s.due[:698]), s.due[699], daybook.Subject{ID: "new"}) // sub_699 is not due any more
		s.mu.Unlock()
		if _, err := e.Control().Reopen(ctx, ops, k, "the list is right now"); err != nil {
			t.Fatal(err)
		}
		e.Run()
		r := standsAs(t, e, k, daybook.Done, "")
		if r.Counts["charges"] != 699 || s.charged() != 699 || s.book[k+"/sub_699"]+s.book[k+"/sub_700"] != 0 || s.book[k+"/new"] != 1 {
			t.Errorf("counted %v, charged %d", r.Counts, s.charged())
		}
		n := counts(t, e, k)
		if n.States[daybook.Done] != 699 || n.States[daybook.Cancelled] != 2 || n.Vanished != 1 {
			t.Errorf("%+v", n)
		}
	})
}

// The same for a breaker whose letter was dismissed, and then opened again.
func TestADismissedBreakerIsReopened(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 60, func(j *daybook.Job) { j.Retry.Backoff = []time.Duration{time.Minute} })
		ctx, ops := t.Context(), control.Person{Name: "ops"}
		const k = "renew:2026-03-29"
		s.set(func(string) error { return daybook.NotDone(errors.New("503")) })
		e.At(instant("2026-03-29T00:00:00Z"))
		e.At(instant("2026-03-29T01:10:30Z"))
		standsAs(t, e, k, daybook.Dead, daybook.ReasonBreaker)
		if _, err := e.Control().Dismiss(ctx, ops, k, "nobody is due"); err != nil {
			t.Fatal(err)
		}
		e.Run()
		standsAs(t, e, k, daybook.Dead, daybook.ReasonDismissed)
		if n := counts(t, e, k); n.States[daybook.Cancelled] < 50 || n.Waiting != 0 {
			t.Fatalf("%+v", n)
		}
		s.set(nil)
		if _, err := e.Control().Reopen(ctx, ops, k, "they are"); err != nil {
			t.Fatal(err)
		}
		e.Run()
		if s.charged() != 0 {
			t.Fatalf("charged %d before it was replayed", s.charged())
		}
		if answers, err := e.Control().Replay(ctx, ops, []daybook.Key{k}, ""); err != nil || answers[0].Outcome != daybook.Started {
			t.Fatal(answers, err)
		}
		e.At(instant("2026-03-29T02:10:30Z"))
		standsAs(t, e, k, daybook.Done, "")
		if s.charged() != 60 {
			t.Errorf("charged %d, %+v", s.charged(), counts(t, e, k))
		}
	})
}
