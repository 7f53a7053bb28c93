package sim

import "time"

// The times that the far side keeps to. A message is at work at most flight after it was sent, which is less than settles of any
// job: without such a bound no answer of a far side would ever settle anything.
const (
	flight    = 100 * time.Second
	unsent    = time.Minute // a process is not stopped for longer between a mark and its message
	shortLook = 4 * time.Minute
)

// plan is what becomes of one message.
type plan struct {
	outcome string
	line    string
	after   time.Duration // until it happens
	hidden  time.Duration // and then until a question finds it
	answer  time.Duration
}

// mood is how bad a seed is.
type mood struct {
	kill, fail, delay float64 // of each call
	stall             float64 // of each call that changes something: its process is stopped, or cut off, right before it
	stop, partition   float64 // of each visit of trouble
	far               float64 // of each message
	down              time.Duration
}

func (w *World) chance(p float64) bool { return w.rng.Float64() < p }

// span is a duration between two, shorter ones more often.
func (w *World) span(from, to time.Duration) time.Duration {
	x := w.rng.Float64()
	return (from + time.Duration(x*x*float64(to-from))).Round(time.Microsecond)
}

func (w *World) oneOf(of ...string) string { return of[w.rng.IntN(len(of))] }

func (w *World) planOf(kind string) plan {
	p := plan{outcome: happens, line: answered, after: w.span(time.Millisecond, time.Second)}
	p.answer = p.after + w.span(time.Millisecond, time.Second)
	if !w.chaos() || !w.chance(w.mood.far) {
		return p
	}
	switch w.rng.IntN(10) {
	case 0, 1: // slow, and does it
		p.after = w.span(time.Second, 20*time.Second)
		p.answer = p.after + w.span(time.Second, 40*time.Second)
	case 2:
		p.outcome = w.oneOf(declined, declined, broken, unavailable)
	case 3:
		p.outcome = unavailable
	case 4: // does it, and says otherwise
		p.line = confused
	case 5, 6, 7: // the line
		p.line = w.oneOf(gateway, reset, reset, unheard)
		p.outcome = w.oneOf(happens, happens, happens, lost, lost, declined)
		p.after, p.hidden = w.span(time.Second, flight/2), w.span(0, flight/3)
		p.answer = w.span(10*time.Millisecond, 10*time.Second)
	case 8:
		p.line = unheard
		p.outcome = w.oneOf(happens, lost)
		p.after = w.span(time.Second, flight/2)
	default: // an answer that may come too late
		p.answer += w.span(10*time.Second, 6*time.Minute)
	}
	return p
}

func (w *World) planOfQuestion() (how string, takes time.Duration) {
	takes = w.span(time.Millisecond, 2*time.Second)
	if !w.chaos() || !w.chance(w.mood.far/2) {
		return answered, takes
	}
	return w.oneOf(answered, confused, unheard), w.span(time.Second, 25*time.Second)
}
