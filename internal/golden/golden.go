// Package golden compares what a test got with a file beside the test, and rewrites the file when asked: go test -update.
//
// Only tests import it. Read the difference before you commit what -update wrote.
package golden

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files with what the tests got")

// Equal fails the test if the file at path, relative to the package, does not hold exactly got. With -update it writes
// the file instead, and its folder if there is none.
func Equal[T ~string | ~[]byte](t testing.TB, path string, got T) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("no golden file %s; go test -update writes it with:\n%s", path, string(got))
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("differs from %s (-file +got); if it is meant to: go test -update\n%s", path, diff)
	}
}
