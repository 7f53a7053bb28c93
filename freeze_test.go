package daybook

import (
	"slices"
	"testing"
	"time"
)

func TestFreezes(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return t0.Add(time.Duration(minutes) * time.Minute) }
	list := []Freeze{
		{Name: "b", From: at(20), Until: at(50)}, {Name: "a", From: at(0), Until: at(30)}, {Name: "money", Only: P0, From: at(45), Until: at(90)},
		{Name: "later", From: at(120), Until: at(130)},
	}
	for _, c := range []struct {
		p     Priority
		at    int
		until int // 0: it is not held
	}{
		{P1, -1, 0}, {P1, 0, 50}, {P1, 29, 50}, {P1, 30, 50}, {P1, 50, 0}, {P1, 60, 0}, {P1, 125, 130},
		{P0, 0, 90}, {P0, 50, 90}, {P0, 89, 90}, {P0, 90, 0},
	} {
		want := time.Time{}
		if c.until != 0 {
			want = at(c.until)
		}
		if got := FrozenUntil(list, c.p, at(c.at)); !got.Equal(want) {
			t.Errorf("%s at %d: until %s, want %s", c.p, c.at, got, want)
		}
		due, until := Thaw(list, "a:2026-03-29", c.p, at(c.at))
		if !until.Equal(want) || !want.IsZero() && (due.Before(want) || !due.Before(want.Add(FreezeSpread))) {
			t.Errorf("%s at %d: starts at %s, until %s", c.p, c.at, due, until)
		}
	}
	one, _ := Thaw(list, "a:2026-03-29", P1, at(0))
	same, _ := Thaw(list, "a:2026-03-29", P1, at(10))
	other, _ := Thaw(list, "b:2026-03-29", P1, at(0))
	if !one.Equal(same) || one.Equal(other) {
		t.Errorf("spread: %s, %s, another %s", one, same, other)
	}
	// A freeze that begins within the spread of the one before holds what would start in it.
	after := append(list, Freeze{Name: "at once", From: at(50).Add(time.Microsecond), Until: at(60)})
	if due, until := Thaw(after, "a:2026-03-29", P1, at(0)); !until.Equal(at(60)) || due.Before(at(60)) {
		t.Errorf("it starts at %s, until %s", due, until)
	}
}

func TestFrozenSpans(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return t0.Add(time.Duration(minutes) * time.Minute) }
	list := []Freeze{{From: at(40), Until: at(50)}, {From: at(0), Until: at(30)}, {From: at(10), Until: at(20)}, {From: at(20), Until: at(35)}, {Only: P0, From: at(35), Until: at(45)}}
	for p, want := range map[Priority][]Bounds{P1: {{at(0), at(35)}, {at(40), at(50)}}, P0: {{at(0), at(50)}}} {
		if got := FrozenSpans(list, p); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", p, got, want)
		}
	}
}

func TestAFreezeHoldsUntilTheRunIsDueAgain(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 3, 29, 1, 0, 30, 0, time.UTC)
	r := &Run{Hold: ReasonFrozen, FrozenUntil: due.Add(-20 * time.Second), Due: due}
	if got := r.HeldAt(due.Add(-time.Microsecond)); got != ReasonFrozen {
		t.Errorf("before it is due: %q", got)
	}
	if got := r.HeldAt(due); got != "" {
		t.Errorf("when it is due: %q", got)
	}
	if r.Hold = ReasonPaused; r.HeldAt(due) != ReasonPaused {
		t.Error("a pause has no end")
	}
}
