package memdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestADirectoryGoesWithItsTest(t *testing.T) {
	var dir string
	t.Run("test", func(t *testing.T) {
		dir = Dir(t)
		if filepath.Dir(dir) != Parent() {
			t.Errorf("%s is not in %s", dir, Parent())
		}
		if Dir(t) == dir {
			t.Error("two calls gave one directory")
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestWhatIsNotThereHasNoRoom(t *testing.T) {
	if n := free(filepath.Join(t.TempDir(), "missing")); n != 0 {
		t.Errorf("%d bytes are free in a directory that does not exist", n)
	}
}
