package alert

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/notice"
)

// Each line: what the row is, the route, minutes after the alert → what is told, minutes until the next look, and marks.
// The row: P0|P1, the kind, then told:M reached acked:M closed:M muted:M repeated.
const decisions = `
P0 dead_letter                                      | a,b remind:60 | 0    → first a,b next:60
P0 dead_letter                                      | a             | 0    → first a next:60
P1 dead_letter                                      | a             | 0    → first a next:1440
P1 job_late                                         | a             | 0    → first a never
P1 job_late                                         | a remind:30   | 0    → first a next:30
P0 job_late                                         |               | 0    → nothing next:60
P0 dead_letter told:0 reached                       | a remind:60   | 59   → nothing next:1
P0 dead_letter told:0 reached                       | a remind:60   | 60   → remind a next:60
P0 dead_letter told:60 reached                      | a remind:60   | 300  → remind a next:60
P0 dead_letter told:0 reached acked:10              | a remind:60   | 60   → nothing next:1380
P0 dead_letter told:1420 reached                    | a remind:60   | 1430 → nothing next:10
P0 dead_letter told:1420 reached                    | a remind:60   | 1440 → still open a next:60 repeated
P1 dead_letter told:0 reached                       | a             | 1440 → still open a never repeated
P1 dead_letter told:0 reached acked:5               | a             | 1440 → still open a never repeated
P1 dead_letter told:1440 reached repeated           | a             | 2880 → nothing never repeated
P1 unknown_outcome told:0 reached                   | a             | 1440 → still open a never repeated
P1 job_late told:0 reached                          | a             | 1440 → nothing never
P1 dead_letter                                      | a             | 2000 → still open a never repeated
P0 dead_letter closed:5                             | a             | 6    → nothing never finished
P0 dead_letter told:0 closed:5                      | a             | 6    → nothing never finished
P0 dead_letter told:0 reached closed:5              | b             | 6    → recovered x never finished
P0 dead_letter told:0 reached acked:1 closed:5      | b             | 6    → recovered x never finished
P0 dead_letter muted:30                             | a             | 0    → nothing next:30
P0 dead_letter muted:30                             | a             | 30   → first a next:60
P0 dead_letter told:0 reached muted:120             | a remind:60   | 60   → nothing next:60
P0 dead_letter told:0 reached closed:5 muted:120    | a             | 60   → nothing next:60
P0 dead_letter closed:5 muted:120                   | a             | 60   → nothing never finished
P0 dead_letter told:0 reached closed:5 muted:120    | a             | 120  → recovered x never finished
P0 done_twice told:0 reached                        | a remind:60   | 60   → remind a next:60
`

func TestDecide(t *testing.T) {
	for line := range strings.SplitSeq(strings.TrimSpace(decisions), "\n") {
		in, want, _ := strings.Cut(line, "→")
		parts := strings.Split(in, "|")
		words := strings.Fields(parts[0])
		began := at("2026-03-01T00:00:00Z")
		minute := func(word string) time.Time {
			_, m, _ := strings.Cut(word, ":")
			d, err := time.ParseDuration(m + "m")
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return began.Add(d)
		}
		r := notice.Row{Alert: daybook.Alert{Priority: daybook.Priority(words[0]), Kind: daybook.AlertKind(words[1]), At: began}}
		for _, w := range words[2:] {
			switch name, _, _ := strings.Cut(w, ":"); name {
			case "told":
				r.ToldAt = minute(w)
			case "reached":
				r.Reached = []string{"x"}
			case "acked":
				r.AckedAt = minute(w)
			case "closed":
				r.ClosedAt = minute(w)
			case "muted":
				r.MutedUntil = minute(w)
			case "repeated":
				r.Repeated = true
			}
		}
		var route Route
		for _, w := range strings.Fields(parts[1]) {
			if strings.HasPrefix(w, "remind:") {
				route.Remind = minute(w).Sub(began)
				continue
			}
			route.To = strings.Split(w, ",")
		}
		now := minute(":" + strings.TrimSpace(parts[2]))
		d := decide(r, route, now)
		got := "nothing"
		if d.purpose != "" {
			got = string(d.purpose) + " " + strings.Join(d.to, ",")
		}
		if d.next.IsZero() {
			got += " never"
		} else {
			got += " next:" + strconv.Itoa(int(d.next.Sub(now).Minutes()))
		}
		if d.repeated {
			got += " repeated"
		}
		if d.finished {
			got += " finished"
		}
		if got != strings.TrimSpace(want) {
			t.Errorf("%s\n got %s", line, got)
		}
	}
}

func TestLadder(t *testing.T) {
	now := at("2026-03-01T00:00:00Z")
	for i, want := range []time.Duration{time.Minute, 5 * time.Minute, 25 * time.Minute} {
		if due, ok := ladder(i+1, 0, now); !ok || due.Sub(now) != want {
			t.Errorf("failure %d: %v %v", i+1, due.Sub(now), ok)
		}
	}
	if _, ok := ladder(4, 0, now); ok {
		t.Error("the fourth failure is not given up")
	}
	if due, _ := ladder(1, 10*time.Minute, now); due.Sub(now) != 10*time.Minute {
		t.Error("a longer wait was asked for")
	}
	if due, _ := ladder(3, time.Second, now); due.Sub(now) != 25*time.Minute {
		t.Error("Retry-After shortens the ladder")
	}
}
