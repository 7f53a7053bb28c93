package control_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/faultstore"
	"github.com/daybook-run/daybook/store/storetest"
)

// counted is a control over a real ledger that tells what goes to the database.
type counted struct {
	*control.Control
	s    *store.Store
	mu   sync.Mutex
	said []string
}

func newCounted(t testing.TB, d storetest.Database) *counted {
	c := &counted{}
	f := faultstore.New(1)
	f.Add(faultstore.Rule{Hook: func(_ context.Context, call faultstore.Call) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.said = append(c.said, strings.TrimSpace(string(call.Op)+" "+sizes.ReplaceAllString(call.Text, "")))
		return nil
	}})
	var err error
	if c.s, err = store.Open(t.Context(), d.Faulty(t, f), store.Options{NewID: storetest.NewID, Migrate: true, Now: storetest.Birth}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.s.Close() })
	c.Control = control.New(c.s, control.Options{Clock: func() time.Time { return storetest.Birth }})
	return c
}

// sizes is the mark of a statement that is planned anew when tables have grown.
var sizes = regexp.MustCompile(`/\*[a-z]+\*/$`)

// during returns what was said while something is done.
func (c *counted) during(do func()) []string {
	c.mu.Lock()
	c.said = nil
	c.mu.Unlock()
	do()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.said)
}

// known makes so many jobs known whose windows are events, and returns their names.
func known(t testing.TB, s *store.Store, n int, change ...func(*daybook.Job)) []string {
	changes, names := make([]daybook.Revision, n), make([]string, n)
	for i := range changes {
		names[i] = fmt.Sprintf("mail%05d", i)
		j := daybook.Job{Name: names[i], Owner: "ops", Timezone: "UTC", Window: daybook.PerEvent, Command: daybook.Command{Argv: []string{"true"}}}
		for _, f := range change {
			f(&j)
		}
		whole, _, err := calendar.Complete(j, nil)
		if err != nil {
			t.Fatal(err)
		}
		changes[i] = daybook.Revision{Job: &whole}
	}
	if _, err := s.TakeRevisions(t.Context(), changes, false, storetest.Birth); err != nil {
		t.Fatal(err)
	}
	return names
}

func event(job, id string) control.Request {
	return control.Request{Job: job, Window: id, Source: daybook.SourceEvent}
}

// ofAllJobs is a statement that reads more jobs than the one that is meant.
var ofAllJobs = regexp.MustCompile(`FROM daybook_jobs( [a-z])?\s+(ORDER|$)`)

// TestWhatATriggerCosts pins how often a trigger goes to the database: BEGIN and COMMIT among them. A job more, or two thousand
// more, cost nothing.
func TestWhatATriggerCosts(t *testing.T) {
	for _, kind := range []func(testing.TB) storetest.Database{storetest.SQLite, storetest.Postgres} {
		d := kind(t)
		// job, BEGIN, how the key stands, the rows, COMMIT; nodes of what is to be done; on SQLite each kind of row by itself.
		want := map[string]int{"new": 6, "joined": 6, "done": 5, "new once": 6, "done once": 6}
		if d.Name == "sqlite" {
			want = map[string]int{"new": 8, "joined": 7, "done": 6, "new once": 8, "done once": 7}
		}
		t.Run(d.Name, func(t *testing.T) {
			var first map[string][]string
			for _, n := range []int{10, 2000} {
				c := newCounted(t, kind(t))
				job := known(t, c.s, n)[n/2]
				known(t, c.s, 1, func(j *daybook.Job) { j.Name, j.Priority, j.Effects = "renew", daybook.P0, daybook.Once })
				costs := map[string][]string{}
				ask := func(what, job, id string, want daybook.TriggerOutcome) {
					t.Helper()
					for _, id := range []string{"before-" + id, id} { // the first prepares statements
						costs[what] = c.during(func() {
							a, err := c.Trigger(t.Context(), ops, event(job, id))
							if err != nil || a.Outcome != want {
								t.Errorf("%s: %v %v", what, a.Outcome, err)
							}
						})
					}
				}
				ask("new", job, "1", daybook.Started)
				ask("joined", job, "1", daybook.Joined)
				for _, id := range []string{"before-1", "1"} {
					c.endsWith(t, daybook.Key(job+":"+id), daybook.ResultDone)
				}
				ask("done", job, "1", daybook.Reused)
				ask("new once", "renew", "2", daybook.Started)
				for _, id := range []string{"before-2", "2"} {
					c.endsWith(t, daybook.Key("renew:"+id), daybook.ResultDone)
				}
				ask("done once", "renew", "2", daybook.Reused)
				for what, said := range costs {
					if len(said) != want[what] {
						t.Errorf("%d jobs, %s: %d calls of the database, want %d:\n%s", n, what, len(said), want[what], strings.Join(said, "\n"))
					}
					if i := slices.IndexFunc(said, ofAllJobs.MatchString); i >= 0 {
						t.Errorf("%d jobs, %s: reads them all: %s", n, what, said[i])
					}
					if first != nil && !slices.Equal(said, first[what]) {
						t.Errorf("%s: with %d jobs it costs\n%s\nwith 10\n%s", what, n, strings.Join(said, "\n"), strings.Join(first[what], "\n"))
					}
				}
				if first == nil {
					first = costs
				}
			}
		})
	}
}

// TestWhatAClaimCosts: between a call and a start there are BEGIN, the lock that freezes wait for, one look, what is taken and read, and
// COMMIT; however many are taken, and whatever their priorities.
func TestWhatAClaimCosts(t *testing.T) {
	for _, kind := range []func(testing.TB) storetest.Database{storetest.SQLite, storetest.Postgres} {
		c := newCounted(t, kind(t))
		jobs := []string{known(t, c.s, 1)[0], "renew"}
		known(t, c.s, 1, func(j *daybook.Job) { j.Name, j.Priority, j.Effects = "renew", daybook.P0, daybook.Repeatable })
		for _, slots := range []int{10, 1000} {
			var said []string
			for n := range 5 { // the first prepare statements
				for i := range 2 * n {
					if _, err := c.Trigger(t.Context(), ops, event(jobs[i%2], fmt.Sprintf("%d-%d-%d", slots, n, i))); err != nil {
						t.Fatal(err)
					}
				}
				said = c.during(func() {
					runs, err := c.s.Claim(t.Context(), daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: slots, Lease: storetest.Birth.Add(time.Minute), NewID: storetest.NewID}, storetest.Birth)
					if err != nil || len(runs) != 2*n {
						t.Fatalf("claimed %d, want %d: %v", len(runs), 2*n, err)
					}
					for i, r := range runs {
						if job := jobs[(i/n+1)%2]; r.Job != job {
							t.Errorf("%d of %d is of job %s, want %s: what touches money comes first", i, 2*n, r.Job, job)
						}
					}
				})
			}
			if len(said) != 5 {
				t.Errorf("%d slots: %d calls of the database, want 5:\n%s", slots, len(said), strings.Join(said, "\n"))
			}
		}
	}
}

// endsWith claims a run, and ends it.
func (c *counted) endsWith(t testing.TB, k daybook.Key, result daybook.Result) {
	t.Helper()
	runs, err := c.s.Claim(t.Context(), daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: 1, Key: k, Lease: storetest.Birth.Add(time.Minute), NewID: storetest.NewID}, storetest.Birth)
	if err != nil || len(runs) != 1 {
		t.Fatalf("claim %s: %d runs, %v", k, len(runs), err)
	}
	j, err := c.s.Definition(t.Context(), k.Job())
	if err != nil {
		t.Fatal(err)
	}
	r := runs[0]
	var e *daybook.StepRecord
	if r.OneEffect() {
		e, _ = r.Begin(j.Policy(), storetest.Birth)
	}
	if err := c.s.Begin(t.Context(), r, e, storetest.Birth); err != nil {
		t.Fatal(err)
	}
	storetest.Apply(t.Context(), t, c.s, r.Next(daybook.Outcome{Result: result}, j.Policy(), storetest.Birth))
}

// TestWhoMeansOneJobReadsOne: the verbs and questions about one job, or one key, do not read all jobs.
func TestWhoMeansOneJobReadsOne(t *testing.T) {
	c := newCounted(t, storetest.SQLite(t))
	job := known(t, c.s, 3)[1]
	key := daybook.Key(job + ":1")
	ctx := t.Context()
	if _, err := c.Trigger(ctx, ops, event(job, "1")); err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{
		"trigger": func() error { _, err := c.Trigger(ctx, ops, event(job, "1")); return err },
		"preview": func() error { _, err := c.Preview(ctx, ops, event(job, "1")); return err },
		"replay":  func() error { _, err := c.Replay(ctx, ops, []daybook.Key{key}, ""); return err },
		"plan":    func() error { _, err := c.PlanReplay(ctx, job); return err },
		"pause":   func() error { _, err := c.Pause(ctx, ops, job, "seen"); return err },
		"resume":  func() error { _, err := c.Resume(ctx, ops, job); return err },
		"run":     func() error { _, err := c.Run(ctx, key); return err },
		"no run":  func() error { _, err := c.Run(ctx, daybook.Key(job+":none")); return none(err) },
		"runs":    func() error { _, err := c.Runs(ctx, daybook.Filter{Job: job}); return err },
		"find":    func() error { _, err := c.Find(ctx, string(key), 10); return err },
		"next":    func() error { _, err := c.Next(ctx, job, 1, time.Time{}); return err },
		"story":   func() error { _, err := c.Key(ctx, key); return err },
	} {
		said := c.during(func() {
			if err := do(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
		if i := slices.IndexFunc(said, ofAllJobs.MatchString); i >= 0 {
			t.Errorf("%s reads all jobs: %s", what, said[i])
		}
	}
	if _, err := c.Trigger(ctx, ops, event("mail0001", "1")); !strings.Contains(daybook.HintOf(err), "mail00001") {
		t.Errorf("the nearest name is told all the same: %v", err)
	}
}

func none(err error) error {
	if daybook.CodeOf(err) == daybook.CodeNotFound {
		return nil
	}
	return errors.Join(errors.New("it is found"), err)
}

// BenchmarkTrigger asks for keys by the door of the API, in ledgers of so many jobs: new ones, and one that is waiting.
//
//	go test ./control -run '^$' -bench Trigger -benchtime 2s
func BenchmarkTrigger(b *testing.B) {
	for _, kind := range []string{"sqlite", "postgres"} {
		for _, jobs := range []int{10, 1000, 10000} {
			for _, callers := range []int{1, 16} {
				for _, what := range []string{"new", "again"} {
					b.Run(fmt.Sprintf("%s/%s/jobs=%d/callers=%d", kind, what, jobs, callers), func(b *testing.B) {
						d := storetest.SQLite(b)
						if kind == "postgres" {
							d = storetest.PostgresAt(pgtest.Server(b, "shared_buffers=256MB", "max_wal_size=4GB").URL)
						}
						s := storetest.Ledger(b, d)
						job := known(b, s, jobs)[jobs/2]
						c := control.New(s, control.Options{Clock: func() time.Time { return storetest.Birth }})
						ask := func(id int) error {
							_, err := c.Trigger(b.Context(), ops, event(job, fmt.Sprint("e", id)))
							return err
						}
						const again = 100
						for i := range again {
							if err := ask(i); err != nil {
								b.Fatal(err)
							}
						}
						b.ResetTimer()
						var next atomic.Int64
						var all sync.WaitGroup
						for range callers {
							all.Go(func() {
								for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
									id := again + int(i)
									if what == "again" {
										id = int(i) % again
									}
									if err := ask(id); err != nil {
										b.Error(err)
										return
									}
								}
							})
						}
						all.Wait()
						b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "/s")
					})
				}
			}
		}
	}
}
