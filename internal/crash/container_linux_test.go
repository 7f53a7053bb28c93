package crash

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// contained starts a process as a container would: as number 1 of a space of process numbers of its own, under the same
// host name as all the others.
func contained(cmd *exec.Cmd) {
	if !mayContain() {
		return
	}
	a := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS}
	asRootOfItsOwn(a)
	cmd.SysProcAttr = a
}

func asRootOfItsOwn(a *syscall.SysProcAttr) {
	if os.Getuid() == 0 {
		return
	}
	a.Cloneflags |= syscall.CLONE_NEWUSER
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
}

// mayContain reports whether this machine lets us.
var mayContain = sync.OnceValue(func() bool {
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS}
	asRootOfItsOwn(cmd.SysProcAttr)
	return cmd.Run() == nil
})
