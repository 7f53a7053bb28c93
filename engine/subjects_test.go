package engine_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/store/storetest"
)

// subjects of TestManySubjects. The figures of the documentation are those of a million.
var subjects = flag.Int("subjects", 3000, "how many subjects TestManySubjects lists and does")

// mostMemory is what a process may take for them above what it takes idle.
const mostMemory = 64 << 20

// TestManySubjects lists many subjects and does them, and looks at the memory of the process meanwhile. Another job comes to
// its turn all the while.
func TestManySubjects(t *testing.T) {
	each(t, func(t *testing.T, db storetest.Database) {
		handles := db.Open(t)
		e := app(t, handles, engine.Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		var done, wrong atomic.Int64
		e.Handle(daybook.Job{Name: "renew", Owner: "ops", Timezone: "UTC", Window: daybook.Day, Effects: daybook.Repeatable, Timeout: -1},
			func(_ context.Context, r *daybook.Run) error {
				if r.Subject == "" {
					wrong.Add(1)
				}
				done.Add(1)
				return nil
			},
			daybook.Subjects(func(_ context.Context, w daybook.Window) iter.Seq2[daybook.Subject, error] {
				return func(yield func(daybook.Subject, error) bool) {
					for i := range *subjects {
						if !yield(daybook.Subject{ID: fmt.Sprintf("sub_%07d", i), Payload: map[string]int{"cents": 1500}}, nil) {
							return
						}
					}
				}
			}))
		var beside atomic.Int64
		e.Handle(daybook.Job{Name: "beside", Owner: "ops", Timezone: "UTC", Schedule: "every 10s", Effects: daybook.Repeatable},
			func(context.Context, *daybook.Run) error { beside.Add(1); return nil })
		ctx := t.Context()
		start(t, e)
		debug.FreeOSMemory()
		idle, began := resident(t), time.Now()
		a, err := e.Control().Trigger(ctx, control.Person{Name: "ops"}, control.Request{Job: "renew", Window: "2026-01-02"})
		if err != nil || a.Outcome != daybook.Started {
			t.Fatal(a.Line(), err)
		}
		most, listed := int64(0), time.Duration(0)
		for look := time.NewTicker(50 * time.Millisecond); ; {
			<-look.C
			most = max(most, resident(t)-idle)
			r, err := e.Store().Run(ctx, a.Key)
			if err != nil {
				t.Fatal(err)
			}
			if listed == 0 && r.Reason == daybook.ReasonFannedOut {
				listed = time.Since(began)
			}
			if !r.State.Live() {
				if r.State != daybook.Done {
					t.Fatalf("%s: %s", r.State, r.LastError)
				}
				break
			}
		}
		took := time.Since(began)
		n, err := e.Store().Subjects(ctx, a.Key)
		if err != nil || n.States[daybook.Done] != int64(*subjects) || done.Load() != int64(*subjects) || wrong.Load() > 0 {
			t.Errorf("%d done, %+v, %v", done.Load(), n, err)
		}
		if took > 30*time.Second && beside.Load() < int64(took/(20*time.Second)) {
			t.Errorf("another job came to its turn %d times in %s", beside.Load(), took)
		}
		if most > mostMemory {
			t.Errorf("%d MB above idle", most>>20)
		}
		t.Logf("%d subjects: listed in %s, done in %s, %d MB above idle, another job %d times", *subjects, listed.Round(time.Millisecond), took.Round(time.Millisecond), most>>20, beside.Load())
	})
}

// resident is the memory of this process, in bytes. Where the system does not tell, what the runtime has taken.
func resident(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if errors.Is(err, os.ErrNotExist) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.Sys - m.HeapReleased)
	}
	var size, pages int64
	if err == nil {
		_, err = fmt.Fscan(strings.NewReader(string(text)), &size, &pages)
	}
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
