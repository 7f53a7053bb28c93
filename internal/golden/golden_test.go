package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder is a test that records what was said to it.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Errorf(format string, args ...any) { r.said += fmt.Sprintf(format, args...) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.said += fmt.Sprintf(format, args...)
	panic(r)
}

func equal(t *testing.T, path, got string) string {
	r := &recorder{TB: t}
	func() {
		defer func() { recover() }()
		Equal(r, path, got)
	}()
	return r.said
}

func TestEqual(t *testing.T) {
	path := filepath.Join(t.TempDir(), "testdata", "page.html")
	if said := equal(t, path, "<p>one\n"); !strings.Contains(said, "no golden file") || !strings.Contains(said, "<p>one") {
		t.Errorf("without a file: %q", said)
	}

	*update = true
	said := equal(t, path, "<p>one\n")
	*update = false
	if b, err := os.ReadFile(path); said != "" || err != nil || string(b) != "<p>one\n" {
		t.Errorf("-update: %q, wrote %q, %v", said, b, err)
	}

	if said := equal(t, path, "<p>one\n"); said != "" {
		t.Errorf("equal: %q", said)
	}
	Equal(t, path, []byte("<p>one\n"))
	if said := equal(t, path, "<p>one"); !strings.Contains(said, "-update") {
		t.Errorf("a missing line end: %q", said)
	}
}
