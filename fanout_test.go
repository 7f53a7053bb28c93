package daybook

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// parent is a run that was listed.
func parent() *Run {
	return &Run{Key: "renew:2026-10-26", Job: "renew", Priority: P0, Effects: Once, Window: Window{Label: "2026-10-26"}, State: Running, Reason: ReasonFannedOut,
		Fans: true, Fence: 1, Claim: "c", Attempts: 1, ClaimedAt: noon, Due: noon}
}

type moved struct {
	run *Run
	Transition
}

// fanoutMoves takes every arrow of runs with subjects.
func fanoutMoves(t *testing.T) (list []moved) {
	p := Policy{Retry: Retry{Jitter: -1}} // no ladder: the fifth failure uses it up
	listing := parent()
	listing.Reason, listing.Fans = ReasonNone, false
	list = append(list, moved{listing, listing.List(Listed{Subjects: 20, New: 20}, Outcome{Result: ResultDone}, noon)},
		moved{listing, listing.List(Listed{Next: noon.Add(time.Hour)}, Outcome{Result: ResultDone}, noon)})
	for _, zone := range []bool{false, true} {
		for _, f := range []Fanout{{}, {Faulty: 1, Fault: "row 3"}, {Ends: fails(5)}, {Run: &Run{CancelledBy: "ops"}, Left: true}, {Run: &Run{CancelledBy: "ops"}}} {
			r := parent()
			if zone {
				r.State, r.Reason = Retryable, ReasonNextZone
			}
			if f.Run != nil {
				r.CancelledBy = f.Run.CancelledBy
			}
			f.Run = r
			if m := f.Next(p, 64, noon); m.End != nil {
				list = append(list, moved{r, *m.End})
			}
		}
	}
	dead := parent()
	dead.State, dead.Reason, dead.Letter = Dead, ReasonBreaker, &Letter{ID: "l", Key: dead.Key, Kind: LetterFailed, State: LetterOpen}
	m, err := dead.Replay("ops", "", noon)
	if err != nil {
		t.Fatal(err)
	}
	return append(list, moved{dead, m})
}

// fails are so many subjects that fail alike, one after the other.
func fails(n int) (ends []SubjectEnd) {
	for i := range n {
		ends = append(ends, SubjectEnd{Key: Key(fmt.Sprintf("renew:2026-10-26/sub_%02d", i+1)), Failed: true, Error: fmt.Sprintf("503 from gateway, request %d of sub_%02d", 100+i, i+1), At: noon})
	}
	return ends
}

func end(subject, what string) SubjectEnd {
	e := SubjectEnd{Key: Key("renew:2026-10-26/" + subject), Done: what == "done", At: noon}
	if what != "done" && what != "left" {
		e.Failed, e.Error = true, what
	}
	return e
}

// TestALook has one line a case: how the run with subjects stands, what ended, and what the look decides.
func TestALook(t *testing.T) {
	ladder := Policy{Retry: Retry{Backoff: []time.Duration{time.Minute, 5 * time.Minute}, Jitter: -1}}
	open := Breaker{Open: true, Step: 1, Next: noon, Error: "503", Failed: []Key{"a", "b", "c", "d", "e"}, Since: noon.Add(-time.Minute)}
	tried := open
	tried.Trial = "renew:2026-10-26/sub_09"
	last := tried
	last.Step = 2
	for _, c := range []struct {
		says string
		f    Fanout
		want string
	}{
		{"before the first success few are let go", Fanout{Waiting: true, UnderWay: true}, "let go 5"},
		{"after it a portion", Fanout{Waiting: true, UnderWay: true, Breaker: Breaker{Won: true}}, "let go 64, won"},
		{"the first success is enough", Fanout{Waiting: true, UnderWay: true, Out: 4, Ends: []SubjectEnd{end("sub_01", "done")}}, "let go 60, won"},
		{"while half of it is out none are", Fanout{Waiting: true, UnderWay: true, Out: 33, Breaker: Breaker{Won: true}}, "won"},
		{"below that it is filled up", Fanout{Waiting: true, UnderWay: true, Out: 32, Breaker: Breaker{Won: true}}, "let go 32, won"},
		{"nothing waits", Fanout{UnderWay: true, Breaker: Breaker{Won: true}}, "won"},
		{"all have ended well", Fanout{Breaker: Breaker{Won: true}}, "won, rests, done"},
		{"a listing that was empty", Fanout{}, "rests, done"},
		{"more ends are to be read first", Fanout{MoreEnds: true}, "rests"},
		{"a letter is open", Fanout{Failed: true}, "rests"},
		{"an outcome is unknown", Fanout{Unknown: true}, "rests"},
		{"the listing named what is no subject", Fanout{Faulty: 2, Fault: "the subject is empty"}, "rests, dead dead_letter: the listing named what is no subject: the subject is empty"},

		{"four that fail alike are not enough", Fanout{Waiting: true, UnderWay: true, Out: 4, Ends: fails(4)}, "4 failed alike"},
		{"and with them no more are let go than it takes to judge", Fanout{Waiting: true, UnderWay: true, Out: 1, Ends: fails(3)}, "let go 1, 3 failed alike"},
		{"the fifth opens the breaker", Fanout{Waiting: true, UnderWay: true, Ends: fails(5)}, "open step 1 next +1m0s, park, look +1m0s"},
		{"one that fails again and again is one", Fanout{Waiting: true, UnderWay: true, Out: 4, Ends: append(fails(4), fails(4)...)}, "4 failed alike"},
		{"with four that failed one more is let go, though few are at a time", Fanout{Waiting: true, UnderWay: true, Breaker: Breaker{Failed: []Key{"a", "b", "c", "d"}}}, "let go 1, 4 failed alike"},
		{"another error begins a new row", Fanout{UnderWay: true, Ends: append(fails(4), end("sub_05", "insufficient funds"))}, "1 failed alike"},
		{"a success ends the row", Fanout{UnderWay: true, Ends: append(append(fails(4), end("sub_09", "done")), fails(1)...)}, "1 failed alike, won"},
		{"what only left is no success", Fanout{UnderWay: true, Waiting: true, Ends: append(append(fails(4), end("sub_09", "left")), fails(5)[4:]...)}, "open step 1 next +1m0s, park, look +1m0s"},
		{"no success after others counts as before", Fanout{UnderWay: true, Waiting: true, Breaker: Breaker{Won: true}, Ends: fails(5)}, "won, open step 1 next +1m0s, park, look +1m0s"},

		{"open, and its time has come: one is tried", Fanout{UnderWay: true, Waiting: true, Breaker: open}, "open step 1 next +0s, park, try"},
		{"open, and one is being tried", Fanout{UnderWay: true, Waiting: true, Breaker: tried}, "open step 1 next +0s trial, park"},
		{"the trial fails: the next step", Fanout{UnderWay: true, Breaker: tried, Ends: []SubjectEnd{end("sub_09", "503")}}, "open step 2 next +5m0s, park, look +5m0s"},
		{"another fails meanwhile: nothing", Fanout{UnderWay: true, Breaker: tried, Ends: []SubjectEnd{end("sub_02", "503")}}, "open step 1 next +0s trial, park"},
		{"the trial is taken away by a person: another", Fanout{UnderWay: true, Breaker: tried, Ends: []SubjectEnd{end("sub_09", "left")}}, "open step 1 next +0s, park, try"},
		{"the trial waits for a serial key: another, a little later", Fanout{UnderWay: true, Breaker: tried, Ends: []SubjectEnd{{Key: tried.Trial, Held: true}}}, "open step 1 next +10s, park, look +10s"},
		{"who waits for a serial key is no end, and is looked for no more", Fanout{UnderWay: true, Waiting: true, Breaker: Breaker{Won: true, After: "renew:2026-10-26/sub_50"}, Ends: []SubjectEnd{{Key: "renew:2026-10-26/sub_02", Held: true}}}, "let go 64, won, after renew:2026-10-26/sub_50"},
		{"the trial succeeds: it is closed", Fanout{UnderWay: true, Breaker: tried, Ends: []SubjectEnd{end("sub_09", "done")}}, "won, unpark"},
		{"any other succeeds: it is closed", Fanout{UnderWay: true, Breaker: tried, Ends: []SubjectEnd{end("sub_02", "done")}}, "won, unpark"},
		{"nobody is left to be tried", Fanout{Breaker: open, Unknown: true}, "rests"},
		{"taken up again: what was cancelled with it comes back first", Fanout{Breaker: Breaker{Back: true}}, "back"},
		{"a success does not make it forgotten", Fanout{UnderWay: true, Waiting: true, Breaker: Breaker{Back: true}, Ends: []SubjectEnd{end("sub_02", "done")}}, "won, back"},
		{"who was let go since is looked for no more", Fanout{UnderWay: true, Waiting: true, Breaker: Breaker{Won: true, After: "renew:2026-10-26/sub_50"}, Ends: []SubjectEnd{end("sub_02", "done")}}, "let go 64, won, after renew:2026-10-26/sub_50"},
		{"but when one of them may wait again", Fanout{UnderWay: true, Waiting: true, Breaker: Breaker{Won: true, After: "renew:2026-10-26/sub_50"}, Ends: []SubjectEnd{end("sub_02", "left")}}, "let go 64, won"},
		{"which one behind it need not", Fanout{UnderWay: true, Waiting: true, Breaker: Breaker{Won: true, After: "renew:2026-10-26/sub_50"}, Ends: []SubjectEnd{end("sub_60", "left")}}, "let go 64, won, after renew:2026-10-26/sub_50"},
		{"the ladder is used up", Fanout{UnderWay: true, Breaker: last, Ends: []SubjectEnd{end("sub_09", "503 gateway")}},
			"open step 3 next +0s, park, dead breaker_open: subjects fail alike, and no more are let go: 503 gateway"},
	} {
		t.Run(c.says, func(t *testing.T) {
			f := c.f
			f.Run = parent()
			if got := lookText(f.Next(ladder, 64, noon)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func lookText(m FanMove) string {
	var words []string
	add := func(when bool, format string, args ...any) {
		if when {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	b := m.Breaker
	add(m.LetGo > 0, "let go %d", m.LetGo)
	add(len(b.Failed) > 0 && !b.Open, "%d failed alike", len(b.Failed))
	add(b.Won, "won")
	add(b.After != "", "after %s", b.After)
	trial := ""
	if b.Trial != "" {
		trial = " trial"
	}
	add(b.Open, "open step %d next +%s%s", b.Step, b.Next.Sub(noon), trial)
	add(m.Unpark, "unpark")
	add(m.Park, "park")
	add(m.Try, "try")
	add(m.Cancel, "cancel")
	add(m.Drop, "drop")
	add(m.Back, "back")
	add(!m.Look.IsZero(), "look +%s", m.Look.Sub(noon))
	add(m.Rests, "rests")
	if e := m.End; e != nil {
		text := string(e.To)
		if len(e.Alerts) > 0 {
			text += fmt.Sprintf(" %s: %s", e.Alerts[0].Kind, e.Alerts[0].LastError)
		}
		words = append(words, text)
	}
	return strings.Join(words, ", ")
}

// TestALookWhileItListsAgain has one line a case, of a run that is listed for a further zone, or again after that failed.
func TestALookWhileItListsAgain(t *testing.T) {
	ladder := Policy{Retry: Retry{Backoff: []time.Duration{time.Minute}, Jitter: -1}}
	tried := Breaker{Open: true, Step: 1, Next: noon, Error: "503", Trial: "renew:2026-10-26/sub_09"}
	open := tried
	open.Trial = ""
	for _, c := range []struct {
		says string
		f    Fanout
		want string
	}{
		{"who waits is let go", Fanout{Waiting: true, UnderWay: true, Breaker: Breaker{Won: true}}, "let go 64, won"},
		{"before the first success few", Fanout{Waiting: true, UnderWay: true}, "let go 5"},
		{"it does not rest, and has not come to its end", Fanout{Breaker: Breaker{Won: true}}, "won"},
		{"nor is it blamed for what it named before", Fanout{Faulty: 1}, ""},
		{"the breaker opens", Fanout{UnderWay: true, Waiting: true, Ends: fails(5)}, "open step 1 next +1m0s, park, look +1m0s"},
		{"one is tried", Fanout{UnderWay: true, Waiting: true, Breaker: open}, "open step 1 next +0s, park, try"},
		{"the ladder is used up: it ends after the listing", Fanout{UnderWay: true, Breaker: tried, Ends: []SubjectEnd{end("sub_09", "503")}}, "open step 2 next +1m0s, park, look +1m0s"},
		{"a success closes the breaker", Fanout{UnderWay: true, Breaker: tried, Ends: []SubjectEnd{end("sub_09", "done")}}, "won, unpark"},
		{"what was cancelled with it waits for the listing", Fanout{Waiting: true, UnderWay: true, Breaker: Breaker{Back: true}}, ""},
	} {
		for _, stands := range []struct {
			state  State
			reason Reason
		}{{Running, ReasonNone}, {Retryable, ReasonRetry}, {Retryable, ReasonLost}, {Retryable, ReasonInterrupted}, {Retryable, ReasonReplayed}} {
			f := c.f
			f.Run, f.Whole = parent(), true
			f.Run.State, f.Run.Reason = stands.state, stands.reason
			if got := lookText(f.Next(ladder, 64, noon)); got != c.want {
				t.Errorf("%s, %s (%s): got %q, want %q", c.says, stands.state, stands.reason, got, c.want)
			}
		}
	}
	asked := parent()
	asked.Reason, asked.CancelledBy = ReasonNone, "ops"
	if got := lookText((&Fanout{Run: asked, Whole: true, Waiting: true, UnderWay: true}).Next(Policy{}, 64, noon)); got != "" {
		t.Errorf("asked to end: %q", got)
	}
	first := parent() // some of its subjects are written
	first.Reason = ReasonNone
	if got := lookText((&Fanout{Run: first, Waiting: true, UnderWay: true}).Next(Policy{}, 64, noon)); got != "" {
		t.Errorf("the first listing: %q", got)
	}
}

func TestARunThatEndedHasNoLookButWhatWaits(t *testing.T) {
	for _, c := range []struct {
		state  State
		letter LetterState
		want   string
	}{
		{Done, "", ""}, {Cancelled, "", "cancel, drop"}, {Dead, LetterOpen, ""}, {Dead, LetterDismissed, "cancel, drop"}, {Scheduled, "", ""}, {Retryable, "", ""},
	} {
		r := parent()
		if r.State, r.Reason = c.state, ""; c.letter != "" {
			r.Letter = &Letter{State: c.letter}
		}
		if got := lookText((&Fanout{Run: r, Waiting: true, Unstarted: true, UnderWay: true}).Next(Policy{}, 64, noon)); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.state, c.letter, got, c.want)
		}
	}
	asked := parent()
	asked.CancelledBy = "ops"
	if got := lookText((&Fanout{Run: asked, Waiting: true, UnderWay: true, Unstarted: true}).Next(Policy{}, 64, noon)); got != "cancel" {
		t.Errorf("asked to end: %q", got)
	}
	if got := lookText((&Fanout{Run: asked, Left: true, Breaker: Breaker{Back: true}}).Next(Policy{}, 64, noon)); got != "rests, cancelled" {
		t.Errorf("asked to end before what was cancelled came back: %q", got)
	}
	if got := lookText((&Fanout{Run: asked}).Next(Policy{}, 64, noon)); got != "rests, done" {
		t.Errorf("asked to end when nothing was left to be cancelled: %q", got)
	}
	if got := lookText((&Fanout{Run: asked, Faulty: 1}).Next(Policy{}, 64, noon)); got != "rests, cancelled" {
		t.Errorf("asked to end, and some rows named no subject: %q", got)
	}
	zones := parent()
	zones.CancelledBy, zones.State, zones.Reason = "ops", Retryable, ReasonNextZone
	if got := lookText((&Fanout{Run: zones}).Next(Policy{}, 64, noon)); got != "rests, cancelled" {
		t.Errorf("asked to end before the last zone was listed: %q", got)
	}
}

func TestAlike(t *testing.T) {
	if a, b := alike("503 from gateway, request 17 for sub_01\nmore", "sub_01"), alike("503 from gateway, request 8 for sub_02", "sub_02"); a != b {
		t.Errorf("%q and %q are not alike", a, b)
	}
	if alike("card declined", "a") == alike("connection refused", "b") {
		t.Error("two errors are alike")
	}
}

func TestWhatIsNoSubject(t *testing.T) {
	r := parent()
	j := &Job{Name: "renew", HasSubjects: true}
	big := strings.Repeat("x", MaxPayloadBytes)
	for _, s := range []Subject{{}, {ID: strings.Repeat("a", MaxSubjectBytes+1)}, {ID: strings.Repeat("ä", 30)}, {ID: "a", Payload: make(chan int)}, {ID: "a", Payload: big}} {
		if c, err := r.Child(j, s, r.Window); CodeOf(err) != CodeInvalid {
			t.Errorf("%.20q: %v %v", s.ID, c, err)
		}
	}
	c, err := r.Child(j, Subject{ID: "Zoë/1", Payload: nil}, r.Window)
	if err != nil || c.Key != "renew:2026-10-26/Zo%C3%AB%2F1" || c.Input != nil || c.Hold != HoldTurn || c.Line != "" || c.Parent != r.Key {
		t.Errorf("%+v %v", c, err)
	}
	if !slices.Contains(States, c.State) {
		t.Error(c.State)
	}
}
