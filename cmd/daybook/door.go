package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/httpapi"
)

// exampleListen is an address that only this machine reaches.
const exampleListen = "127.0.0.1:7070"

// listenOn listens on an address; nil when it is empty.
func listenOn(ctx context.Context, listen string) (net.Listener, error) {
	if listen == "" {
		return nil, nil
	}
	if _, _, err := net.SplitHostPort(listen); err != nil {
		return nil, daybook.Invalid("--listen %q is not an address", daybook.Clip(listen, 60)).WithHint("such as %s", exampleListen)
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return nil, daybook.New(daybook.CodeUnavailable, "listen on %s", listen).Because(err).
			WithHint("another program has this address, or it is none of this machine: name another with --listen")
	}
	return ln, nil
}

func closeListener(ln net.Listener) error {
	if ln == nil {
		return nil
	}
	return ln.Close()
}

// loopback reports whether only this machine reaches a listener.
func loopback(ln net.Listener) bool {
	at, ok := ln.Addr().(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}

// reachedAt returns where the jobs reach the door: by the url of the file, and on this machine by the listener's address.
func reachedAt(public string, ln net.Listener) (url, local string) {
	if ln == nil {
		return "", ""
	}
	host, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		return "", ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return public, "http://" + net.JoinHostPort(host, port)
}

// Timeouts against slow clients, and for what is under way when serve stops.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = time.Minute
	idleTimeout   = time.Minute
	closeTimeout  = 5 * time.Second
)

// openDoor answers on a listener; on none when it is nil. Where others can reach it, nobody gets in without a token, so one
// must have been made.
func (a *app) openDoor(ctx context.Context, l *ledger, ln net.Listener) (stop func() error, err error) {
	if ln == nil {
		return func() error { return nil }, nil
	}
	if !loopback(ln) {
		has, err := l.Control().HasToken(ctx)
		if err != nil {
			return nil, err
		}
		if !has {
			return nil, daybook.Conflict("--listen %s can be reached from other machines, and no token has been made: nobody could be told from anybody", ln.Addr()).
				WithHint("daybook token create --role act --name NAME, or listen on this machine only: --listen %s", exampleListen)
		}
	}
	number, _ := build()
	log := a.logger()
	server := &http.Server{Handler: httpapi.Handler(l.Control(), httpapi.Options{OpenReads: loopback(ln), Version: number, Log: log}),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)} // what clients do wrong is no trouble of ours
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err := server.Shutdown(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close()
		}
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}
