package loop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daybook-run/daybook"
)

// service is a service made of a function.
type service func(ctx context.Context, now time.Time) (bool, error)

func (s service) Tick(ctx context.Context, now time.Time) (bool, error) { return s(ctx, now) }

// waiting is a service that knows when it has something to do.
type waiting struct {
	service
	wait time.Duration
}

func (w waiting) Wait(time.Time) time.Duration { return w.wait }

// diary collects when a service was called, in time since the start of the bubble.
type diary struct {
	start time.Time
	at    []time.Duration
}

func newDiary() *diary { return &diary{start: time.Now()} }

func (d *diary) note() { d.at = append(d.at, time.Since(d.start)) }

func (d *diary) expect(t *testing.T, want ...time.Duration) {
	t.Helper()
	if !slices.Equal(d.at, want) {
		t.Errorf("called at %v, want %v", d.at, want)
	}
}

// run runs items for a span of bubble time and returns what was logged.
func run(t *testing.T, span time.Duration, now func() time.Time, items ...Item) string {
	t.Helper()
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	Run(ctx, items, Options{Now: now, Log: slog.New(slog.NewTextHandler(&out, nil))})
	return out.String()
}

func TestAServiceIsCalledAtOnceAndThenByItsInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		run(t, 3500*time.Millisecond, nil, Item{Name: "a", Service: service(func(_ context.Context, now time.Time) (bool, error) {
			if !now.Equal(time.Now()) {
				t.Errorf("now is %v, want %v", now, time.Now())
			}
			d.note()
			return false, nil
		})})
		d.expect(t, 0, time.Second, 2*time.Second, 3*time.Second)
	})
}

func TestMoreIsCalledAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		run(t, time.Minute, nil, Item{Every: 40 * time.Second, Service: service(func(context.Context, time.Time) (bool, error) {
			d.note()
			return len(d.at) < 3, nil
		})})
		d.expect(t, 0, 0, 0, 40*time.Second)
	})
}

func TestAServiceThatAlwaysHasMoreLetsOthersRunAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		greedy, other := 0, newDiary()
		run(t, 20*time.Millisecond, nil,
			Item{Name: "greedy", Service: service(func(context.Context, time.Time) (bool, error) { greedy++; return true, nil })},
			Item{Name: "other", Every: 10 * time.Millisecond, Service: service(func(context.Context, time.Time) (bool, error) {
				other.note()
				return false, nil
			})})
		if greedy < 10*burstMax || greedy > 30*burstMax {
			t.Errorf("the greedy service was called %d times in 20 ms, want about %d", greedy, 20*burstMax)
		}
		if len(other.at) < 2 {
			t.Errorf("the other one was called %d times", len(other.at))
		}
	})
}

func TestErrorsAreLoggedOnceAndBackedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		log := run(t, 2*time.Minute, nil, Item{Name: "relay", Every: 4 * time.Second, Service: service(func(context.Context, time.Time) (bool, error) {
			d.note()
			if len(d.at) <= 6 {
				err := &daybook.Error{Message: "claim messages", Hint: "look at the disk", Err: errors.New("disk full")}
				return true, err // more does not matter
			}
			return false, nil
		})})
		s := time.Second
		d.expect(t, 0, 4*s, 12*s, 28*s, 58*s, 88*s, 118*s)
		if n := strings.Count(log, "level=ERROR"); n != 6 {
			t.Errorf("%d errors logged, want 6:\n%s", n, log)
		}
		for _, want := range []string{
			`msg=tick service=relay err="claim messages: disk full" failures=1 retry_in=4s hint="look at the disk"`,
			`failures=5 retry_in=30s`, `level=INFO msg="tick works again" service=relay failures=6`,
		} {
			if !strings.Contains(log, want) {
				t.Errorf("not logged: %s\n%s", want, log)
			}
		}
	})
}

// What waits for a ledger that was away waits for at most four seconds more.
func TestALedgerThatIsAwayIsAskedForAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		run(t, 20*time.Second, nil, Item{Service: service(func(context.Context, time.Time) (bool, error) {
			d.note()
			return false, fmt.Errorf("claim runs: %w", daybook.New(daybook.CodeUnavailable, "the connection is gone"))
		})})
		s := time.Second
		d.expect(t, 0, s, 3*s, 7*s, 11*s, 15*s, 19*s)
	})
}

func TestSuccessResetsTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		run(t, 9500*time.Millisecond, nil, Item{Service: service(func(context.Context, time.Time) (bool, error) {
			d.note()
			if slices.Contains([]int{1, 2, 4}, len(d.at)) {
				return false, errors.New("busy")
			}
			return false, nil
		})})
		s := time.Second
		d.expect(t, 0, s, 3*s /* good */, 4*s, 5*s /* good */, 6*s, 7*s, 8*s, 9*s)
	})
}

func TestARareServiceIsNotCalledMoreOftenAfterErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		run(t, 150*time.Minute, nil, Item{Every: time.Hour, Service: service(func(context.Context, time.Time) (bool, error) {
			d.note()
			return false, errors.New("busy")
		})})
		d.expect(t, 0, time.Hour, 2*time.Hour)
	})
}

func TestAPanicIsAnErrorWithItsStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, other := newDiary(), newDiary()
		log := run(t, 2500*time.Millisecond, nil,
			Item{Name: "bad", Service: service(func(context.Context, time.Time) (bool, error) {
				d.note()
				if len(d.at) == 1 {
					panic("index out of range")
				}
				return false, nil
			})},
			Item{Name: "good", Service: service(func(context.Context, time.Time) (bool, error) { other.note(); return false, nil })})
		s := time.Second
		d.expect(t, 0, s, 2*s)
		other.expect(t, 0, s, 2*s)
		if !strings.Contains(log, `service=bad err="panic: index out of range"`) || !strings.Contains(log, "loop_test.go") {
			t.Errorf("the panic and where it came from are not logged:\n%s", log)
		}
	})
}

func TestAWakeUpEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, wake := newDiary(), make(chan struct{}, 1)
		time.AfterFunc(7*time.Second, func() { wake <- struct{}{} })
		run(t, 50*time.Second, nil, Item{Every: 20 * time.Second, Wake: wake, Service: service(func(context.Context, time.Time) (bool, error) {
			d.note()
			if len(d.at) == 1 {
				wake <- struct{}{} // comes during a Tick: kept
			}
			return false, nil
		})})
		d.expect(t, 0, 0, 7*time.Second, 27*time.Second, 47*time.Second)
	})
}

func TestAWakeUpDoesNotShortenTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, wake := newDiary(), make(chan struct{}, 1)
		time.AfterFunc(time.Second, func() { wake <- struct{}{} })
		run(t, 15*time.Second, nil, Item{Every: 10 * time.Second, Wake: wake, Service: service(func(context.Context, time.Time) (bool, error) {
			d.note()
			if len(d.at) == 1 {
				return false, errors.New("busy")
			}
			return false, nil
		})})
		d.expect(t, 0, 10*time.Second, 10*time.Second) // the wake-up was kept
	})
}

func TestAClosedWakeChannelWakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, wake := newDiary(), make(chan struct{})
		close(wake)
		run(t, 2500*time.Millisecond, nil, Item{Wake: wake, Service: service(func(context.Context, time.Time) (bool, error) {
			d.note()
			return false, nil
		})})
		d.expect(t, 0, time.Second, 2*time.Second)
	})
}

func TestAServiceMaySayHowLongThereIsNothingToDo(t *testing.T) {
	s := time.Second
	for _, c := range []struct {
		name        string
		wait, every time.Duration
		want        []time.Duration
	}{
		{"shorter than the interval", 4 * s, 10 * s, []time.Duration{0, 4 * s, 8 * s}},
		{"longer than the interval", time.Hour, 5 * s, []time.Duration{0, 5 * s, 10 * s}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDiary()
				run(t, 11*s, nil, Item{Every: c.every, Service: waiting{
					service(func(context.Context, time.Time) (bool, error) { d.note(); return false, nil }), c.wait,
				}})
				d.expect(t, c.want...)
			})
		})
	}
	t.Run("nothing, wrongly", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newDiary()
			run(t, 10*time.Millisecond, nil, Item{Service: waiting{
				service(func(context.Context, time.Time) (bool, error) { d.note(); return false, nil }), -s,
			}})
			if len(d.at) > 11 {
				t.Errorf("called %d times in 10 ms", len(d.at))
			}
		})
	})
}

// TestALeapOfTheWallClockIsSeen moves the wall clock while the timers do not know: what a suspended machine sees.
func TestALeapOfTheWallClockIsSeen(t *testing.T) {
	for _, c := range []struct {
		name string
		leap time.Duration
		want []time.Duration
	}{
		{"forward", 8 * time.Hour, []time.Duration{0, 60 * time.Second}},
		{"a little forward", 50 * time.Minute, []time.Duration{0, 10 * time.Minute}},
		{"back", -time.Hour, []time.Duration{0, 60 * time.Second}},
		{"none", 0, []time.Duration{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDiary()
				now := func() time.Time {
					if time.Since(d.start) > 45*time.Second {
						return time.Now().Add(c.leap)
					}
					return time.Now()
				}
				run(t, 50*time.Minute, now, Item{Every: time.Hour, Service: service(func(context.Context, time.Time) (bool, error) {
					d.note()
					return false, nil
				})})
				d.expect(t, c.want...)
			})
		})
	}
}

func TestRunReturnsWhenTheLastTickHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ended, idle := false, newDiary()
		log := run(t, time.Second, nil,
			Item{Name: "slow", Service: service(func(ctx context.Context, _ time.Time) (bool, error) {
				<-ctx.Done()
				time.Sleep(5 * time.Second) // what it has to write down before it may end
				ended = true
				return true, ctx.Err()
			})},
			Item{Name: "idle", Every: time.Hour, Service: service(func(context.Context, time.Time) (bool, error) { idle.note(); return false, nil })})
		if !ended || time.Since(start) != 6*time.Second {
			t.Errorf("returned after %v with the Tick ended: %v", time.Since(start), ended)
		}
		idle.expect(t, 0)
		if log != "" {
			t.Errorf("an ordinary end was logged: %s", log)
		}
	})
}

func TestNothingIsCalledUnderADoneContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	Run(ctx, []Item{{Service: service(func(context.Context, time.Time) (bool, error) { t.Error("called"); return true, nil })}}, Options{})
}

func TestWaitsAreShorterByTheirPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		now := func() time.Time { return d.start.Add(60 * time.Since(d.start)) }
		Run(ctx, []Item{{Every: time.Minute, Service: service(func(context.Context, time.Time) (bool, error) {
			d.note()
			return false, nil
		})}}, Options{Now: now, Pace: 60})
		d.expect(t, 0, time.Second, 2*time.Second, 3*time.Second)
	})
}
