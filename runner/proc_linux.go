package runner

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// procStat is what /proc tells of a process.
type procStat struct {
	state byte   // R, S, D, Z …
	pgid  int    // its process group
	start uint64 // when it started, in ticks since the machine did: with the pid, an identity
}

func (s procStat) ended() bool { return s.state == 'Z' || s.state == 'X' }

func statOf(pid int) (procStat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, err
	}
	// The name, second and in brackets, may hold anything, brackets included; the last one ends it.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 || len(fields[0]) != 1 {
		return procStat{}, fmt.Errorf("/proc/%d/stat has another form", pid)
	}
	pgid, err := strconv.Atoi(string(fields[2]))
	if err != nil {
		return procStat{}, err
	}
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	return procStat{state: fields[0][0], pgid: pgid, start: start}, err
}

// processIdentity returns what, beside its pid, names a process for good: when it started, and the boot of the machine.
func processIdentity(pid int) (start uint64, boot string) {
	s, err := statOf(pid)
	if err != nil {
		return 0, ""
	}
	return s.start, bootID()
}

func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// sameProcess reports whether the process of that pid, start and boot is alive.
func sameProcess(pid int, start uint64, boot string) bool {
	if pid <= 0 || start == 0 || boot == "" || boot != bootID() {
		return false
	}
	s, err := statOf(pid)
	return err == nil && s.start == start && !s.ended()
}

// groupAlive reports whether a process of the group runs. The dead that nobody has waited for, as they gather in a
// container whose first process waits for nobody, do not count.
func groupAlive(pgid int) bool {
	if !groupExists(pgid) {
		return false
	}
	pids, err := allPids()
	if err != nil {
		return true
	}
	for _, pid := range pids {
		if s, err := statOf(pid); err == nil && s.pgid == pgid && !s.ended() {
			return true
		}
	}
	return false
}

func allPids() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// holders returns the processes, with their groups, that have the lock of an attempt, and not merely its file open: they
// were started by it. Whoever asks whether it is alive, this process or another Daybook, has the file open, too.
// Processes of other users are not seen, save by root.
func holders(path string) map[int]int {
	want, err := os.Stat(path)
	if err != nil {
		return nil
	}
	pids, err := allPids()
	if err != nil {
		return nil
	}
	found := make(map[int]int)
	for _, pid := range pids {
		if pid == os.Getpid() || !holds(pid, path, want) {
			continue
		}
		if s, err := statOf(pid); err == nil && !s.ended() {
			found[pid] = s.pgid
		}
	}
	return found
}

func holds(pid int, path string, want os.FileInfo) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	entries, err := os.ReadDir(dir + "fd")
	if err != nil {
		return false
	}
	for _, e := range entries {
		fd := dir + "fd/" + e.Name()
		// The name first: to stat every open file might wait for a file server that is away.
		if target, err := os.Readlink(fd); err != nil || filepath.Base(target) != filepath.Base(path) {
			continue
		}
		if info, err := os.Stat(fd); err == nil && os.SameFile(info, want) && locked(dir+"fdinfo/"+e.Name()) {
			return true
		}
	}
	return false
}

// locked reports whether an open file has an exclusive flock. The kernel shows it with every copy of the descriptor
// that took it, as in
//
//	lock:	1: FLOCK  ADVISORY  WRITE 4711 fe:01:1835 0 EOF
func locked(fdinfo string) bool {
	b, err := os.ReadFile(fdinfo)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "lock:") && strings.Contains(line, " FLOCK ") && strings.Contains(line, " WRITE ") {
			return true
		}
	}
	return false
}
