//go:build !linux

package crash

import "os/exec"

func contained(*exec.Cmd) {}

func mayContain() bool { return false }
