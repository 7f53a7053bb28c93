//go:build !linux

package main

import "syscall"

// boundUnsent has nothing to set here: the kernel's own patience counts.
func boundUnsent(string, string, syscall.RawConn) error { return nil }
