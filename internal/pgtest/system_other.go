//go:build !unix

package pgtest

import (
	"errors"
	"syscall"
)

// serverAccount refuses: without signals and sh a server cannot be stopped for certain. The environment may name one.
func serverAccount() (*account, error) {
	return nil, errors.New("on this system set " + EnvServer + " to the URL of a PostgreSQL server")
}

func attributes(*account) *syscall.SysProcAttr { return nil }

func stopAndList(int) []int { return nil }

func killAll([]int) {}
