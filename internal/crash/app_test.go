package crash

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/engine"
)

// app is a program of somebody's own that does the renewals in Go, on the ledger in its own database: helper app.
func app() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	db, err := handlesOf(os.Getenv("DAYBOOK_CRASH_DB"))
	if err != nil {
		return ended(err)
	}
	e, err := engine.Open(ctx, db, engine.Options{App: "crash", Lease: lease, Slots: map[daybook.Lane]int{daybook.LaneLive: 64},
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return ended(err)
	}
	for _, name := range []string{"paid", "bare"} {
		a := &renewer{db: db.Write, asks: name == "paid"}
		job := daybook.Job{Name: name, Owner: "ops", Timezone: "UTC", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once, Steps: true,
			Overlap: daybook.OverlapAllow, Settles: time.Second, Retry: daybook.Retry{Backoff: []time.Duration{time.Second, time.Second, time.Second, time.Second}}}
		var options []engine.HandleOption
		if a.asks {
			options = append(options, engine.Probe(a.ask))
			job.ProbeUndo = true // the far side can be asked about refunds, too
		}
		e.Handle(job, a.renew, options...)
	}
	return ended(e.Start(ctx, func() { fmt.Fprintln(os.Stderr, "daybook serves an application") }))
}

func ended(err error) int {
	if err == nil {
		return exitDone
	}
	fmt.Fprintln(os.Stderr, err)
	return exitUnclear
}

// renewer does the renewals of one job.
type renewer struct {
	db   *sql.DB
	asks bool
}

func (a *renewer) renew(ctx context.Context, r *daybook.Run) error {
	key := string(r.Key)
	charge := daybook.EffectOf[string]{
		Do: func(_ context.Context, wireKey string) (string, error) {
			return a.call(key, "charge", "/charges", wireKey, fmt.Sprintf(`{"customer":%q,"day":%q,"amount":1500,"currency":"EUR"}`, r.Job, r.Key.Parts().Window))
		},
		Undo: func(_ context.Context, undoKey, _ string) error {
			id, err := chargeOn(r.Job, r.Key.Parts().Window)
			if err != nil {
				return err
			}
			_, err = a.call(key, "undo", "/refunds", undoKey, fmt.Sprintf(`{"charge":%q}`, id))
			return err
		},
	}
	if a.asks {
		charge.Probe = a.ask
	}
	passAt(key, "before-charge")
	if _, err := daybook.Effect(ctx, r, "charge", charge); err != nil {
		return err
	}
	passAt(key, "after-charge")
	if err := a.extend(ctx, r); err != nil {
		return err
	}
	passAt(key, "after-extend")
	mail := daybook.EffectOf[string]{
		Do: func(_ context.Context, wireKey string) (string, error) {
			return a.call(key, "mail", "/mails", wireKey, "")
		},
		Undo: func(_ context.Context, undoKey, _ string) error {
			_, err := a.call(key, "sorry", "/sorry", undoKey, "")
			return err
		},
	}
	if _, err := daybook.Effect(ctx, r, "mail", mail); err != nil {
		return err
	}
	passAt(key, "after-mail")
	return nil
}

// extend writes a row of the application's own with the mark of its step, or neither.
func (a *renewer) extend(ctx context.Context, r *daybook.Run) error {
	passAt(string(r.Key), "extend-begun")
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if done, err := daybook.StepTx(ctx, tx, r, "extend"); done || err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO crash_paid (key) VALUES ('%s')", r.Key)); err != nil {
		return err
	}
	passAt(string(r.Key), "extend-open")
	if err := tx.Commit(); err != nil {
		return err
	}
	passAt(string(r.Key), "extend-committed")
	return nil
}

// call asks one of the services outside for something. It can be stopped before it is sent, and when it is answered.
func (a *renewer) call(key, what, path, wireKey, body string) (string, error) {
	passAt(key, what+"-begun")
	r, err := http.NewRequest(http.MethodPost, os.Getenv(envFar)+path, strings.NewReader(body))
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
	if err != nil {
		return "", err
	}
	passAt(key, what+"-had")
	switch answer.StatusCode {
	case http.StatusOK:
		return string(text), nil
	case http.StatusServiceUnavailable:
		return "", daybook.NotDone(errors.New(answer.Status))
	case http.StatusPaymentRequired:
		return "", daybook.Permanent(errors.New(answer.Status))
	}
	return "", errors.New(answer.Status)
}

// chargeOn is the gateway's id of what was charged for a day.
func chargeOn(customer, day string) (string, error) {
	answer, err := client.Get(os.Getenv(envGateway) + "/charges?" + url.Values{"customer": {customer}, "day": {day}}.Encode())
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var list struct{ Data []struct{ ID string } }
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil || len(list.Data) != 1 {
		return "", fmt.Errorf("%d charges of %s on %s: %w", len(list.Data), customer, day, err)
	}
	return list.Data[0].ID, nil
}

// ask asks the gateway about a charge or a refund. About mail nobody can tell.
func (a *renewer) ask(_ context.Context, wireKey string) (string, daybook.Answer, error) {
	path := "/charges"
	switch {
	case !strings.Contains(wireKey, "#charge"):
		return "", daybook.CannotTell, nil
	case strings.Contains(wireKey, "~undo"):
		path = "/refunds"
	}
	answer, err := client.Get(os.Getenv(envFar) + path + "?key=" + url.QueryEscape(wireKey))
	if err != nil {
		return "", daybook.CannotTell, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return "", daybook.CannotTell, err
	case answer.StatusCode == http.StatusOK:
		return string(text), daybook.Yes, nil
	case answer.StatusCode == http.StatusNotFound:
		return "", daybook.No, nil
	}
	return "", daybook.CannotTell, nil
}

// Work in Go, in a process of somebody's own, is killed wherever it can be, in the middle of its own transaction too: each effect
// and each refund happens once, and each row of its own is there once.
func TestAnApplicationIsKilledAtEveryBoundary(t *testing.T) {
	onBoth(t, "  none: {window: day, run: [\"true\"]}\n", func(w *world) {
		b := newBoundaries(w)
		db := w.handles()
		_, err := db.Write.ExecContext(t.Context(), `CREATE TABLE crash_paid (key TEXT NOT NULL)`)
		if err = errors.Join(err, db.Write.Close(), db.Read.Close()); err != nil {
			t.Fatal(err)
		}
		charge := []string{"charge-begun", "charge-sent", "charge-had"}
		undo := []string{"undo-begun", "undo-sent", "undo-had"}
		points := slices.Concat([]string{"asked", "ladder", "extend-begun", "extend-committed", "mail-begun", "mail-sent", "mail-had"}, scriptPoints, charge, undo)
		if strings.HasPrefix(w.url, "postgres") { // a ledger on SQLite has one writer: nobody else would come to a point meanwhile
			points = append(points, "extend-open")
		}
		b.killed([]victim{{"app", points, slices.Concat(charge, undo), mail, nil, true, nil}}, func(cmd *exec.Cmd) { cmd.Path, cmd.Args = w.me, []string{w.me, "app"} })
		if !slices.Contains(points, "extend-open") {
			b.killed([]victim{{"app", []string{"extend-open"}, nil, mail, nil, true, nil}}, func(cmd *exec.Cmd) { cmd.Path, cmd.Args = w.me, []string{w.me, "app"} })
		}
		for _, n := range b.all {
			rows := 0
			w.rows(`SELECT COUNT(*) FROM crash_paid WHERE key = $1`, func(rs *sql.Rows) error { return rs.Scan(&rows) }, n.key)
			if rows != 1 {
				t.Errorf("%s, killed at %s: %d rows", n.key, n.point, rows)
			}
		}
	})
}
