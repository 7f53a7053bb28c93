package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
)

// hangups makes SIGHUP a signal to take the file again, from now on: before anybody listens it must not end the process. One
// that comes while the file is read is kept, for it may have changed since.
func hangups() (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	return signals, func() { signal.Stop(signals) }
}

// reloads takes the file again whenever a signal comes, until ctx ends. The function waits for the last one.
func (a *app) reloads(ctx context.Context, l *ledger, signals <-chan os.Signal, ready <-chan struct{}) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		select {
		case <-ready: // before it, nothing works that could take another file
		case <-ctx.Done():
			return
		}
		for {
			select {
			case <-signals:
				if err := a.reload(ctx, l); err != nil {
					a.report(err)
					a.say("the file is not taken: what was taken before goes on")
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// reload takes the file again, all of it or, on an error, nothing.
func (a *app) reload(ctx context.Context, l *ledger) error {
	f, err := config.Load(a.configPath())
	if err != nil {
		return err
	}
	text, err := a.databaseURL(f)
	if err != nil {
		return err
	}
	if text != l.url {
		return daybook.Conflict("the database cannot change while serve works: it works on %s, and the file says %s", config.Mask(l.url), config.Mask(text)).
			WithHint("stop serve and start it again; a ledger is moved with it by daybook db backup")
	}
	told, err := a.alerts(f, true)
	if err != nil {
		return err
	}
	if missing := a.missingSecrets(f); len(missing) > 0 {
		return errors.Join(missing...)
	}
	changes, err := a.mayTake(ctx, l, f)
	if err != nil {
		return err
	}
	public := f.URL
	if a.localURL == "" { // nobody can report to it
		public = ""
	}
	s := engine.Settings{Slots: slotsOf(f), Retention: retentionOf(f), Alerts: told, URL: public, LocalURL: a.localURL, Freezes: f.Freezes, Zone: f.Timezone}
	if err := l.Reload(ctx, s, definitions(f, a.vault())...); err != nil {
		return err
	}
	before := l.file
	l.file = f
	a.say("%s is taken again: %s", f.Path, daybook.Count(len(f.Jobs), "%d job", "%d jobs"))
	a.tellChanges(changes)
	a.tellSettings(before, f)
	return nil
}

// tellChanges says what a file changed about jobs, a line each; nothing where the ledger knew none of them.
func (a *app) tellChanges(changes []control.Change) {
	known := false
	for _, c := range changes {
		known = known || c.Old != nil
	}
	for _, c := range changes {
		if !known || c.Kind == control.ChangeNone {
			continue
		}
		var names []daybook.Text
		if c.Old != nil && c.New != nil {
			for _, d := range config.Differences(c.Old, c.New) {
				names = append(names, d.Text())
			}
		}
		if a.flags.json {
			a.logger().Warn("definition changed", "job", c.Job, "change", c.Kind, "names", names)
		}
		if len(names) == 0 {
			a.say("  %s", changeText(c))
		} else {
			a.say("  %s: %s", changeText(c), daybook.Texts(names))
		}
	}
}

// tellSettings says what else the file changed.
func (a *app) tellSettings(before, after *config.File) {
	for _, d := range config.SettingDifferences(before, after) {
		a.say("  %s", d.Text())
		if a.flags.json {
			a.logger().Warn("setting changed", "name", d.Name, "old", d.Old, "new", d.New)
		}
	}
}
