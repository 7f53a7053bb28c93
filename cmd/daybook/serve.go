package main

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/config"
)

// defaultListen is where serve answers.
const defaultListen = "127.0.0.1:7070"

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
	f, err := config.Load(a.configPath())
	if err != nil {
		return err
	}
	text, err := a.databaseURL(f)
	if err != nil {
		return err
	}
	l, err := a.openAt(ctx, "serve", text, f, true)
	if err != nil {
		return err
	}
	stopHealth, err := serveHealth(ctx, listen)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	ctx, done := guardFile(ctx, text)
	err = l.Start(ctx, func() {
		a.say("daybook serves %s of %s, ledger %s, ready in %d ms", plural(len(f.Jobs), "job"), f.Path, config.Mask(text), time.Since(began).Milliseconds())
	})
	return errors.Join(done(), err, stopHealth(), l.Close())
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
	return (&daybook.Error{Code: daybook.CodeUnavailable, Message: "the ledger " + path + " was removed or replaced while serve worked on it: what was recorded since may not be in it"}).
		WithHint("put the file or the newest backup back before serve is started again: an empty ledger knows of nothing done")
}

// serveHealth answers /healthz on an address of this machine; none when the address is empty.
func serveHealth(ctx context.Context, listen string) (stop func() error, err error) {
	if listen == "" {
		return func() error { return nil }, nil
	}
	if err := loopbackOnly(listen); err != nil {
		return nil, err
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return nil, (&daybook.Error{Code: daybook.CodeUnavailable, Message: "listen on " + listen, Err: err}).
			WithHint("another program has this address: name another with --listen")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write([]byte("OK\n")) // the one who asked is gone: nobody is left to tell
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	return func() error {
		err := server.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

// loopbackOnly refuses addresses that others can reach: nothing here asks who they are yet.
func loopbackOnly(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return daybook.Invalid("--listen %q is not an address", daybook.Clip(listen, 60)).WithHint("such as %s", defaultListen)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return daybook.Invalid("--listen %s can be reached from other machines", daybook.Clip(listen, 60)).
		WithHint("this version listens on this machine only: %s", defaultListen)
}
