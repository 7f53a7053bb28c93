//go:build unix

package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// serverAccount returns the user a server runs as: nil for the one that runs the test. PostgreSQL refuses root.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			continue
		}
		gid, err := strconv.Atoi(u.Gid)
		if err != nil {
			continue
		}
		return &account{name: name, uid: uid, gid: gid}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody")
}

// attributes makes a process lead a session of its own, as a user if one is given.
func attributes(u *account) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if u != nil {
		a.Credential = &syscall.Credential{Uid: uint32(u.uid), Gid: uint32(u.gid)}
	}
	return a
}

// stopAndList stops a process, so that it starts no other, and returns its children, where the system tells (Linux).
func stopAndList(pid int) (children []int) {
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the only error is a bad pattern
	for _, file := range files {
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if _, parent := stat(child); parent == pid {
			children = append(children, child)
		}
	}
	return children
}

// killAll kills processes and returns when none of them runs any more.
func killAll(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for end := time.Now().Add(timeout); len(pids) > 0 && time.Now().Before(end); {
		if state, _ := stat(pids[0]); state != "" && state != "Z" {
			<-time.After(time.Millisecond)
			continue
		}
		pids = pids[1:]
	}
}

// stat returns the state of a process, as in "S", and its parent. There is none of a process that is gone.
func stat(pid int) (state string, parent int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}
