package main

import (
	"errors"
	"os"
	"syscall"
)

// The bytes by which SQLite's users of a file keep out of each other's way: PENDING_BYTE and what follows. In WAL mode each of
// them shares them for as long as it has the file open.
const (
	sqliteLockStart = 0x40000000
	sqliteLockBytes = 512
)

// keepOut takes the file of the ledger from all others. It must not be held while this process has the file open by SQLite: the
// locks of a process end with the first descriptor that is closed.
func (p *seat) keepOut() error {
	f, err := os.OpenFile(p.path, os.O_RDWR, 0)
	if err != nil {
		return whatToDo(unwritable(inUse(p.path), err))
	}
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: sqliteLockStart, Len: sqliteLockBytes}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &lock); err != nil {
		return errors.Join(inUse(p.path), f.Close())
	}
	p.lock = f
	return nil
}

// release lets others have the file.
func (p *seat) release() error {
	if p.lock == nil {
		return nil
	}
	f := p.lock
	p.lock = nil
	return f.Close()
}
