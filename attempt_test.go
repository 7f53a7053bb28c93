package daybook

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestOutcomeOf(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name  string
		err   error
		want  Result
		after time.Duration
	}{
		{"nil", nil, ResultDone, 0},
		{"any error", boom, ResultUnclear, 0},
		{"not done", NotDone(boom), ResultNotDone, 0},
		{"permanent", Permanent(boom), ResultPermanent, 0},
		{"unknown", Unknown(boom), ResultUnknown, 0},
		{"retry after", RetryAfter(time.Minute, boom), ResultNotDone, time.Minute},
		{"wrapped", fmt.Errorf("charge: %w", Permanent(boom)), ResultPermanent, 0},
		{"the outer mark wins", Unknown(NotDone(boom)), ResultUnknown, 0},
		{"a permanent error of ours", &Error{Code: CodePermanent, Message: "too long"}, ResultPermanent, 0},
		{"marked otherwise", NotDone(&Error{Code: CodePermanent, Message: "too long"}), ResultNotDone, 0},
		{"unavailable", &Error{Code: CodeUnavailable, Message: "away"}, ResultUnclear, 0},
	} {
		o := OutcomeOf(c.err)
		if o.Result != c.want || o.RetryAfter != c.after || (o.Error == "") != (c.err == nil) {
			t.Errorf("%s: %+v", c.name, o)
		}
		if c.err != nil && o.Error != c.err.Error() {
			t.Errorf("%s: %q", c.name, o.Error)
		}
	}
	if NotDone(nil) != nil || Permanent(nil) != nil || Unknown(nil) != nil || RetryAfter(time.Second, nil) != nil {
		t.Error("no error became one")
	}
	if !errors.Is(Permanent(boom), boom) {
		t.Error("the cause is lost")
	}
}

func TestPayload(t *testing.T) {
	var v struct{ Cents int }
	r := &Run{Key: "renew:2026-10-26"}
	if err := r.Payload(&v); err != nil || v.Cents != 0 {
		t.Error(v, err)
	}
	r.Input = json.RawMessage(`{"cents":1500}`)
	if err := r.Payload(&v); err != nil || v.Cents != 1500 {
		t.Error(v, err)
	}
	r.Input = json.RawMessage(`{"cents":"x"}`)
	if err := r.Payload(&v); CodeOf(err) != CodePermanent {
		t.Error(err)
	}
}

func TestAnAlertSaysWhat(t *testing.T) {
	a := NewAlert(AlertDeadLetter, "renew:2026-10-26", "renew", P0, "declined", "", noon)
	if a.Kind != AlertDeadLetter || a.Job != "renew" || !a.At.Equal(noon) {
		t.Errorf("%+v", a)
	}
	for _, args := range [][3]string{{"", "declined", ""}, {"renew", "", ""}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q was built", args)
				}
			}()
			NewAlert(AlertDeadLetter, "", args[0], P0, args[1], args[2], noon)
		}()
	}
}

func TestStates(t *testing.T) {
	if len(States) != 8 {
		t.Fatalf("%d states", len(States))
	}
	live := 0
	for _, s := range States {
		if s.Live() {
			live++
		}
	}
	if live != 3 || !Scheduled.Live() || !Running.Live() || !Retryable.Live() {
		t.Errorf("%d live states", live)
	}
}
