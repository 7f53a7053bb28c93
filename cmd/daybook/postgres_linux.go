package main

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unsentTimeout is how long sent data may wait for its receipt (TCP_USER_TIMEOUT): keep-alive probes do not count while
// data is under way.
const unsentTimeout = 30 * time.Second

// boundUnsent is a net.Dialer's Control. A socket that is no TCP socket is left alone.
func boundUnsent(network, _ string, c syscall.RawConn) error {
	if network == "unix" {
		return nil
	}
	var set error
	err := c.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unsentTimeout.Milliseconds()))
	})
	return errors.Join(err, set)
}
