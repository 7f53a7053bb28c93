package memdir

import "syscall"

func inMemory() string { return "/dev/shm" }

// free returns how many bytes may still be written to the file system of a directory.
func free(dir string) int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0
	}
	return int64(s.Bavail) * s.Bsize //nolint:unconvert // the types differ between systems
}
