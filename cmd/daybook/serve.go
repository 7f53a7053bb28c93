package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/config"
)

func newServe(a *app) *cobra.Command {
	var listen string
	var lease time.Duration
	cmd := &cobra.Command{
		Use:   "serve",
		Short: textServe,
		Long:  textServeLong,
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("lease") && lease < shortestLease {
				return daybook.Invalid("--lease %s is too short", lease).WithHint("at least %s", shortestLease)
			}
			a.lease = lease
			return a.serve(cmd.Context(), listen)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", textFlagListen)
	cmd.Flags().DurationVar(&lease, "lease", 0, textFlagLease)
	_ = cmd.Flags().MarkHidden("lease") // for the demo and for tests: real work has no use for a crash that is noticed this soon
	return cmd
}

// shortestLease is the shortest lease that --lease takes: it must be renewed in time on a busy machine too.
const shortestLease = 2 * time.Second

// serve runs the jobs of the file until ctx ends.
func (a *app) serve(ctx context.Context, listen string) error {
	began := time.Now()
	signals, ignore := hangups()
	defer ignore()
	f, err := config.Load(a.configPath())
	if err != nil {
		return err
	}
	text, err := a.databaseURL(f)
	if err != nil {
		return err
	}
	ln, err := listenOn(ctx, listen)
	if err != nil {
		return err
	}
	a.url, a.localURL = reachedAt(f.URL, ln)
	l, err := a.openAt(ctx, "serve", text, f, true)
	if err != nil {
		return errors.Join(err, closeListener(ln))
	}
	stopDoor, err := a.openDoor(ctx, l, ln)
	if err != nil {
		return errors.Join(err, closeListener(ln), l.Close())
	}
	changes, err := a.mayTake(ctx, l, f)
	if err != nil {
		return errors.Join(err, stopDoor(), l.Close())
	}
	ctx, done := guardFile(ctx, text)
	ready := make(chan struct{})
	stopReloads := a.reloads(ctx, l, signals, ready)
	err = l.Start(ctx, func() {
		a.tellChanges(changes)
		a.warnOfSecrets(f)
		a.say("daybook serves %s of %s, ledger %s, ready in %d ms", daybook.Count(len(f.Jobs), "%d job", "%d jobs"), f.Path, config.Mask(text), time.Since(began).Milliseconds())
		if ln != nil {
			a.say("it answers on http://%s", ln.Addr())
		}
		close(ready)
	})
	stopReloads()
	return errors.Join(done(), err, stopDoor(), l.Close())
}

// guardEvery is how often serve looks whether the file of its ledger is still the one that it opened.
const guardEvery = time.Second

// guardFile returns a context that ends when the file of a SQLite ledger is removed, or another one stands in its place.
// SQLite does not notice: it would go on with a file that has no name, and a serve started later would make an empty
// ledger that knows of nothing done. The function ends the guard and returns what it found.
func guardFile(ctx context.Context, text string) (context.Context, func() error) {
	path, lite := strings.CutPrefix(text, "sqlite:")
	opened, err := os.Stat(path)
	if !lite || err != nil {
		return ctx, func() error { return nil }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = waitWhile(ctx, guardEvery, func() (bool, error) {
			now, err := os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(opened, now) {
				cancel(errFileGone(path))
			}
			return true, nil
		})
	}()
	return ctx, func() error {
		cancel(nil)
		<-ended
		if err := context.Cause(ctx); daybook.CodeOf(err) == daybook.CodeUnavailable {
			return err
		}
		return nil
	}
}

func errFileGone(path string) error {
	return daybook.New(daybook.CodeUnavailable, "the ledger %s was removed or replaced while serve worked on it: what was recorded since may not be in it", path).
		WithHint("put the file or the newest backup back before serve is started again: an empty ledger knows of nothing done")
}
