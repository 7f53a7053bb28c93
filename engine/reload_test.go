package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/alert"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/store/storetest"
)

// Definitions and settings are taken anew while work is under way: it goes on as it began, what comes is done as is said now,
// and what is wrong changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		began, goOn := make(chan struct{}), make(chan struct{})
		said := make(chan string, 10)
		old := job("renew", daybook.Repeatable, func(ctx context.Context, r *daybook.Run) error {
			close(began)
			<-goOn
			said <- "old " + string(r.Key)
			return nil
		})
		n := serve(t, db.Open(t), engine.Options{}, old, job("gone", daybook.Repeatable, func(context.Context, *daybook.Run) error { return nil }))
		first := n.trigger("renew", "2026-03-02")
		comes(t, "the work began", began)

		says := func(word string) func(context.Context, *daybook.Run) error {
			return func(_ context.Context, r *daybook.Run) error {
				said <- word + " " + string(r.Key)
				return nil
			}
		}
		settings := engine.Settings{Slots: map[daybook.Lane]int{daybook.LaneLive: 1}}
		wrong := engine.Settings{Alerts: alert.Options{Routes: map[daybook.Priority]alert.Route{daybook.P1: {To: []string{"nobody"}}}}}
		nameless := job("", daybook.Repeatable, says("nameless"))
		for what, err := range map[string]error{
			"a route to nobody": n.Reload(t.Context(), wrong, job("renew", daybook.Repeatable, says("wrong"))),
			"a broken job":      n.Reload(t.Context(), settings, job("renew", daybook.Repeatable, says("wrong")), nameless),
		} {
			if daybook.CodeOf(err) != daybook.CodeInvalid {
				t.Errorf("%s: %v", what, err)
			}
		}
		states, err := n.Store().JobStates(t.Context())
		if err != nil || len(states) != 2 || states[0].Revision != 1 || !states[0].RetiredAt.IsZero() {
			t.Errorf("after what was refused: %+v %v", states, err)
		}

		change := func(j *daybook.Job) { j.Owner, j.Overlap = "ann", daybook.OverlapAllow }
		if err := n.Reload(t.Context(), settings, job("renew", daybook.Repeatable, says("new"), change), job("fresh", daybook.Repeatable, says("fresh"))); err != nil {
			t.Fatal(err)
		}
		second := n.trigger("renew", "2026-03-03") // waits: there is one slot now, and it is taken
		if a, err := n.Control().Preview(t.Context(), ops, request("gone")); err == nil {
			t.Errorf("gone: %s", a.Line())
		}
		select {
		case what := <-said:
			t.Errorf("%s ran beside the first one", what)
		default:
		}
		close(goOn)
		ends(t, n.Engine, first, daybook.Done)
		ends(t, n.Engine, second, daybook.Done)
		ends(t, n.Engine, n.trigger("fresh", "2026-03-02"), daybook.Done)
		for _, want := range []string{"old " + string(first), "new " + string(second), "fresh fresh:2026-03-02"} {
			if got := comes(t, want, said); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
	e := app(t, storetest.SQLite(t).Open(t), engine.Options{App: "shop"})
	if err := e.Reload(t.Context(), engine.Settings{}); daybook.CodeOf(err) != daybook.CodeInvalid {
		t.Errorf("an application reloads: %v", err)
	}
}

// A freeze of the file holds what is due, is told with its end, and lets go when it is taken out of the file.
func TestAFreezeIsTakenOutOfTheFile(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db storetest.Database) {
		hour := time.Now().UTC().Add(-time.Hour)
		nightly := []daybook.FreezeRule{{Name: "nightly", Schedule: fmt.Sprintf("%d %d * * *", hour.Minute(), hour.Hour()), For: 20 * time.Hour}}
		work := job("renew", daybook.Repeatable, func(context.Context, *daybook.Run) error { return nil })
		n := serve(t, db.Open(t), engine.Options{Lease: time.Second, Freezes: nightly, Zone: "UTC"}, work)
		a, err := n.Control().Trigger(t.Context(), ops, request("renew"))
		if err != nil || a.Because != string(daybook.ReasonFrozen) {
			t.Fatalf("%s %v", a.Line(), err)
		}
		r := run(t, n.Engine, a.Key)
		if want := hour.Truncate(time.Minute).Add(20 * time.Hour); r.Hold != daybook.ReasonFrozen || !r.FrozenUntil.Equal(want) {
			t.Errorf("held %q until %s, want %s", r.Hold, r.FrozenUntil, want)
		}
		wrong := engine.Settings{Freezes: []daybook.FreezeRule{{Name: "ever", Schedule: "every 1h", For: time.Hour}}, Zone: "UTC"}
		if err := n.Reload(t.Context(), wrong, work); daybook.CodeOf(err) != daybook.CodeInvalid {
			t.Errorf("a freeze without an end: %v", err)
		}
		if l, err := n.Control().Freezes(t.Context()); err != nil || l.Total != 1 || len(l.Freezes) != 1 {
			t.Errorf("after what was refused: %+v %v", l, err)
		}
		if err := n.Reload(t.Context(), engine.Settings{}, work); err != nil {
			t.Fatal(err)
		}
		until(t, "it is let go", func() bool { return run(t, n.Engine, a.Key).Hold == "" })
	})
}

func request(job string) control.Request { return control.Request{Job: job, Window: "2026-03-02"} }
