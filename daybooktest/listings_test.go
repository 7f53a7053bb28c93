package daybooktest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
)

// Who is named more than once, near or far in a listing, is done once, with the payload that was named first.
func TestAListingWithDuplicates(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 1200)
		other := func(id string) daybook.Subject { return daybook.Subject{ID: id, Payload: map[string]any{"cents": 9}} }
		s.due = append(s.due[:3], append([]daybook.Subject{other("sub_01"), other("sub_01"), other("sub_03")}, s.due[3:]...)...)
		s.due = append(s.due, other("sub_02"), other("sub_999"), s.due[0])
		e.At(instant("2026-03-29T00:00:00Z"))
		e.At(instant("2026-03-29T01:10:00Z"))
		const k = "renew:2026-03-29"
		standsAs(t, e, k, daybook.Done, "")
		if n := counts(t, e, k); n.Of != 1200 || n.Repeated != 6 || s.charged() != 1200 {
			t.Errorf("%+v, charged %d", n, s.charged())
		}
		for _, id := range []string{"sub_01", "sub_02", "sub_03", "sub_999"} {
			if c := find(t, e, daybook.Key(k+"/"+id)); string(c.Input) != `{"cents":1500}` || s.book[c.Key] != 1 {
				t.Errorf("%s: payload %s, done %d times", id, c.Input, s.book[c.Key])
			}
		}
	})
}

// Who is named in two zones is done once for the date, when the first of the two hours comes.
func TestADuplicateInTwoZones(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 0, func(j *daybook.Job) { j.Zone, j.Schedule = daybook.ZoneOfSubject, "0 9 * * *" })
		s.due = []daybook.Subject{{ID: "west", Zone: "America/Denver"}, {ID: "west", Zone: "Asia/Tokyo"}, {ID: "same", Zone: "Asia/Tokyo"}, {ID: "same", Zone: "Japan"}}
		const k = "renew:2026-03-10"
		e.At(instant("2026-03-09T18:30:00Z"))
		e.At(instant("2026-03-10T00:30:00Z")) // 09:00 in Tokyo
		if s.book[k+"/west"] != 1 || s.book[k+"/same"] != 1 {
			t.Errorf("by 09:00 in Tokyo: %v", s.book)
		}
		e.At(instant("2026-03-10T21:00:30Z")) // 09:00 everywhere
		standsAs(t, e, k, daybook.Done, "")
		if s.book[k+"/west"] != 1 || s.book[k+"/same"] != 1 {
			t.Errorf("in the end: %v", s.book)
		}
		if c := find(t, e, k+"/same"); c.Zone != "Asia/Tokyo" {
			t.Errorf("its zone is %s", c.Zone)
		}
	})
}

// A zone that is none is told with its subject and guessed by nothing, least of all the machine's own; all others are done.
func TestAListingWithBadZones(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		bad := []string{"Mars/Olympus", "Local", "localtime", "../../etc/passwd", "/etc/localtime", "CEST", "UTC+2", "+02:00", "europe/berlin", "Europe/Berlin ", "posix/Europe/Berlin",
			"\x00", "欧洲/柏林", strings.Repeat("Europe/", 500)}
		e, s := newFan(t, db, 0, func(j *daybook.Job) { j.Zone, j.Schedule = daybook.ZoneOfSubject, "0 9 * * *" })
		for i, zone := range bad {
			s.due = append(s.due, daybook.Subject{ID: fmt.Sprintf("bad_%d", i), Zone: zone}, daybook.Subject{ID: fmt.Sprintf("good_%d", i), Zone: "Asia/Tokyo"})
		}
		const k = "renew:2026-03-10"
		e.At(instant("2026-03-09T18:30:00Z"))
		e.At(instant("2026-03-10T21:00:30Z"))
		r := standsAs(t, e, k, daybook.Dead, "")
		if n := counts(t, e, k); n.Faulty != int64(len(bad)) || n.Of != int64(len(bad)) || s.charged() != len(bad) {
			t.Errorf("%+v, charged %d", n, s.charged())
		}
		if !strings.Contains(r.LastError, "bad_0") || !strings.Contains(r.LastError, "Mars/Olympus") || len(r.LastError) > 1000 {
			t.Errorf("told as: %s", r.LastError)
		}
		// Mended, all of them are done, and nobody twice.
		for i := range s.due {
			s.due[i].Zone = "Asia/Tokyo"
		}
		if _, err := e.Control().Replay(t.Context(), control.Person{Name: "ops"}, []daybook.Key{k}, "zones mended"); err != nil {
			t.Fatal(err)
		}
		e.Run()
		standsAs(t, e, k, daybook.Done, "")
		if s.charged() != 2*len(bad) {
			t.Errorf("charged %d", s.charged())
		}
	})
}

// A listing that says something else at every attempt: what was named first counts for who was named, the last for who is.
func TestAListingThatChangesBetweenAttempts(t *testing.T) {
	each(t, func(t *testing.T, db engine.DB) {
		e, s := newFan(t, db, 0)
		says := func(attempt int, ids ...string) {
			s.due = nil
			for _, id := range ids {
				s.due = append(s.due, daybook.Subject{ID: id, Payload: attempt})
			}
			for i := range 1000 { // so that a batch is written before it breaks off
				s.due = append(s.due, daybook.Subject{ID: fmt.Sprintf("x_%03d", i), Payload: attempt})
			}
		}
		says(1, "left", "stays", "back")
		s.listErr = errors.New("the connection was reset")
		e.At(instant("2026-03-29T00:00:00Z"))
		e.At(instant("2026-03-29T01:00:30Z"))
		says(2, "stays", "came", "went")
		e.At(instant("2026-03-29T01:01:30Z"))
		s.listErr = nil
		says(3, "back", "stays", "came")
		e.At(instant("2026-03-29T01:07:30Z"))
		const k = "renew:2026-03-29"
		standsAs(t, e, k, daybook.Done, "")
		n := counts(t, e, k)
		if n.Of != 1005 || n.Vanished != 2 || n.Repeated != 0 || s.charged() != 1005 {
			t.Errorf("%+v, charged %d", n, s.charged())
		}
		for id, payload := range map[string]string{"left": "1", "stays": "1", "back": "1", "came": "2", "went": "2", "x_007": "1"} {
			if c := find(t, e, daybook.Key(k+"/"+id)); string(c.Input) != payload || c.State != daybook.Done {
				t.Errorf("%s: payload %s, %s", id, c.Input, c.State)
			}
		}
		if r := find(t, e, k); r.Attempts != 3 {
			t.Errorf("%d attempts", r.Attempts)
		}
	})
}
