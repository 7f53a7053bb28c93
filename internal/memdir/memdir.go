// Package memdir gives a test a place for files that need not outlive it: in memory, where the system has room there. Whoever
// waits for the disk there waits for nothing. What a test says about storage itself belongs on a disk: testing.TB.TempDir.
package memdir

import (
	"os"
	"testing"
)

// room is how much must be free, in bytes: a memory file system that runs full would fail the tests of others.
const room = 2 << 30

// Parent returns a directory that everybody may write to: in memory, or that of temporary files.
func Parent() string {
	if dir := inMemory(); dir != "" && free(dir) >= room {
		return dir
	}
	return os.TempDir()
}

// Dir makes a directory of the test's own and removes it when the test ends.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(Parent(), "daybook-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove %s: %v", dir, err)
		}
	})
	return dir
}
