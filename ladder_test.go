package daybook

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDelay(t *testing.T) {
	r := Retry{Backoff: DefaultBackoff, Jitter: -1}
	for _, c := range []struct {
		failures int
		after    time.Duration
		want     time.Duration
		ok       bool
	}{
		{0, 0, 0, false}, {-1, 0, 0, false},
		{1, 0, time.Minute, true}, {2, 0, 5 * time.Minute, true}, {3, 0, 25 * time.Minute, true},
		{4, 0, 0, false}, {4, time.Hour, 0, false},
		{1, -time.Hour, time.Minute, true},
	} {
		if got, ok := r.Delay("renew:2026-10-26", c.failures, c.after); got != c.want || ok != c.ok {
			t.Errorf("%+v: %s, %v", c, got, ok)
		}
	}
	if _, ok := (Retry{Backoff: []time.Duration{}}).Delay("renew:2026-10-26", 1, 0); ok {
		t.Error("no ladder has a step")
	}
}

// What a far side asks for lengthens a delay, within a limit, and never shortens one.
func TestH56RetryAfter(t *testing.T) {
	short := Retry{Backoff: []time.Duration{5 * time.Second}, Jitter: -1}
	for _, c := range []struct {
		r           Retry
		after, want time.Duration
	}{
		{short, 120 * time.Second, 120 * time.Second},
		{short, 90 * time.Second, 90 * time.Second},
		{short, time.Second, 5 * time.Second},
		{short, 999999 * time.Second, MaxRetryAfter},
		{Retry{Backoff: DefaultBackoff, Jitter: -1}, 30 * time.Second, time.Minute},
		{Retry{Backoff: []time.Duration{48 * time.Hour}, Jitter: -1}, 999999 * time.Second, 48 * time.Hour},
	} {
		if got, ok := c.r.Delay("renew:2026-10-26", 1, c.after); !ok || got != c.want {
			t.Errorf("after %s: %s, want %s", c.after, got, c.want)
		}
	}
}

// Jitter adds at most its share, takes nothing away, and is the same on every node.
func TestJitter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(MaxDelay)).Draw(t, "delay"))
		r := Retry{Backoff: []time.Duration{d, d, d}, Jitter: rapid.Float64Range(-1, 1).Draw(t, "jitter")}
		k := Key(rapid.StringMatching(`[a-z]{1,5}:[0-9-]{1,10}`).Draw(t, "key"))
		step := rapid.IntRange(1, 3).Draw(t, "step")
		got, ok := r.Delay(k, step, 0)
		again, _ := r.Delay(k, step, 0)
		most := d + time.Duration(float64(d)*max(r.Jitter, 0))
		if !ok || got < d || got > most || got != again {
			t.Fatalf("%s, then %s, outside %s to %s", got, again, d, most)
		}
	})
}

func TestStartDelay(t *testing.T) {
	if d := StartDelay("renew:2026-10-26", 0) + StartDelay("renew:2026-10-26", -time.Hour); d != 0 {
		t.Error(d)
	}
	// Written down, for a start that moves with a new version is seen by everybody.
	if d := StartDelay("renew:2026-10-26", time.Hour); d != 28*time.Minute+27037940*time.Microsecond {
		t.Error(d)
	}
	rapid.Check(t, func(t *rapid.T) {
		jitter := time.Duration(rapid.Int64Range(1, int64(MaxDelay)).Draw(t, "jitter"))
		if d := StartDelay(Key(rapid.String().Draw(t, "key")), jitter); d < 0 || d >= jitter {
			t.Fatalf("%s of %s", d, jitter)
		}
	})
}

// Keys of neighbouring dates, and the steps of one key, are spread over the whole range.
func TestSpread(t *testing.T) {
	const n = 2000
	var tenth [10]int
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range n / 2 {
		tenth[int(Spread("renew:"+at.AddDate(0, 0, i).Format(time.DateOnly), 0)*10)]++
		tenth[int(Spread("renew:2026-10-26", i)*10)]++
	}
	for i, count := range tenth {
		if count < n/10*7/10 || count > n/10*13/10 {
			t.Errorf("%d of %d lie in tenth %d", count, n, i)
		}
	}
}
