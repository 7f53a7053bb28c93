package crash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/engine"
)

// Of the renewals of each subscription: an application does them, window by window for each of its subjects, one at a time for
// each, and is killed like everybody else. Windows are six seconds long.
const (
	fan       = renewals + "fan"
	fanPeriod = 6 * time.Second
	fanWidth  = 4 // fewer than open a breaker when all cards are refused
)

// fanApp is that application: helper fan.
func fanApp() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	db, err := handlesOf(os.Getenv("DAYBOOK_CRASH_DB"))
	if err != nil {
		return ended(err)
	}
	e, err := engine.Open(ctx, db, engine.Options{App: fan, Lease: lease, Slots: map[daybook.Lane]int{daybook.LaneLive: 6},
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return ended(err)
	}
	job := daybook.Job{Name: fan, Owner: "ops", Timezone: "UTC", Schedule: "every 6s", Window: daybook.PerFire, Priority: daybook.P0, Effects: daybook.Once, Steps: true,
		Serial: "subscription:{subject}", Overlap: daybook.OverlapAllow, CatchupGap: -1, Settles: settles,
		Retry: daybook.Retry{Backoff: []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond}, Jitter: -1}}
	e.Handle(job, fanWork, engine.Probe(fanAsk), daybook.Subjects(func(context.Context, daybook.Window) iter.Seq2[daybook.Subject, error] {
		return func(yield func(daybook.Subject, error) bool) {
			for n := range fanWidth {
				if !yield(daybook.Subject{ID: fmt.Sprintf("sub_%d", n)}, nil) {
					return
				}
			}
		}
	}))
	return ended(e.Start(ctx, func() { fmt.Fprintln(os.Stderr, "daybook serves an application") }))
}

// fanWork renews one subscription: two charges, with a row between.
func fanWork(ctx context.Context, r *daybook.Run) error {
	note := func(what, wireKey string, said int) {
		writeEntry(entry{At: time.Now().UTC(), What: what, Pid: os.Getpid(), Job: r.Job, Key: string(r.Key), Fence: r.Fence, Wire: wireKey, Said: said})
	}
	_, day, _ := strings.Cut(string(r.Key), ":")
	effect := func(step string) error {
		call := func(ctx context.Context, path, wireKey, body string) (string, error) {
			note("sent", wireKey, 0)
			text, err := sendTo(ctx, path, wireKey, body)
			note("told", wireKey, codeOf(err))
			return text, err
		}
		_, err := daybook.Effect(ctx, r, step, daybook.EffectOf[string]{
			Do: func(ctx context.Context, wireKey string) (string, error) {
				return call(ctx, "/charges", wireKey, fmt.Sprintf(`{"customer":%q,"day":%q,"amount":1500,"currency":"EUR"}`, r.Job+"/"+step, day))
			},
			Undo: func(ctx context.Context, undoKey, _ string) error {
				id, err := chargeOn(r.Job+"/"+step, day)
				if err == nil {
					_, err = call(ctx, "/refunds", undoKey, fmt.Sprintf(`{"charge":%q}`, id))
				}
				return err
			},
		})
		return err
	}
	if err := effect("first"); err != nil {
		return err
	}
	if _, err := daybook.Step(ctx, r, "note", func(context.Context) (int, error) { return 7, nil }); err != nil {
		return err
	}
	return effect("second")
}

// sendTo posts to the gateway and says by its error how that ended, as careful work does.
func sendTo(ctx context.Context, path, wireKey, body string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv(envGateway)+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Idempotency-Key", wireKey)
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return "", err
	case answer.StatusCode == http.StatusOK:
		return string(text), nil
	case answer.StatusCode == http.StatusServiceUnavailable:
		return "", daybook.NotDone(errors.New(answer.Status))
	case answer.StatusCode == http.StatusPaymentRequired:
		return "", daybook.Permanent(errors.New(answer.Status))
	}
	return "", errors.New(answer.Status)
}

// codeOf is the exit code of a command that ended so.
func codeOf(err error) int {
	switch daybook.OutcomeOf(err).Result {
	case daybook.ResultDone:
		return exitDone
	case daybook.ResultNotDone:
		return exitNotDone
	case daybook.ResultPermanent:
		return exitPermanent
	}
	return exitUnclear
}

func fanAsk(_ context.Context, wireKey string) (string, daybook.Answer, error) {
	path := "/charges"
	if strings.Contains(wireKey, "~undo") {
		path = "/refunds"
	}
	answer, err := client.Get(os.Getenv(envGateway) + path + "?key=" + url.QueryEscape(wireKey))
	if err != nil {
		return "", daybook.CannotTell, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err == nil && answer.StatusCode == http.StatusOK:
		return string(text), daybook.Yes, nil
	case err == nil && answer.StatusCode == http.StatusNotFound:
		return "", daybook.No, nil
	}
	return "", daybook.CannotTell, err
}

// startFan starts the application anew. It is none of those that serve.
func (c *chaos) startFan() {
	c.fan = c.serve(func(cmd *exec.Cmd) { cmd.Path, cmd.Args = c.me, []string{c.me, "fan"} })
	c.aside(c.fan)
}

// killFan kills the application, in the middle of whatever it is at.
func (c *chaos) killFan() {
	c.apps++
	c.murders = append(c.murders, murder{at: time.Now(), job: fan})
	c.kill(c.fan, false)
	c.startFan()
}

// checkSerial looks whether two runs of one subscription, an undo among them, were at work at once: one sent something before
// the other was answered.
func (c *chaos) checkSerial(v *evidence) {
	type span struct {
		key      string
		from, to time.Time
	}
	all := map[string][]span{}
	for key, entries := range v.diary {
		_, subject, ok := strings.Cut(key, "/")
		if !ok || !strings.HasPrefix(key, fan) {
			continue
		}
		for i, b := range entries {
			if j := slices.IndexFunc(entries[i:], func(e entry) bool { return e.What == "told" && e.Wire == b.Wire && e.Pid == b.Pid }); b.What == "sent" && j >= 0 {
				all[subject] = append(all[subject], span{runOf(b), b.At, entries[i+j].At})
			}
		}
	}
	for subject, spans := range all {
		slices.SortFunc(spans, func(a, b span) int { return cmp.Or(a.from.Compare(b.from), cmp.Compare(a.key, b.key)) })
		for i := 1; i < len(spans); i++ {
			if a, b := spans[i-1], spans[i]; b.from.Before(a.to) {
				c.t.Errorf("%s: %s began %s before %s had ended", subject, b.key, a.to.Sub(b.from), a.key)
			}
		}
	}
	if len(all) == 0 {
		c.t.Error("no subscription was renewed")
	}
}
