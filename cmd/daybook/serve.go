package main

import (
	"context"
	"errors"
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
	ctx, done := guardFile(ctx, text, l)
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
