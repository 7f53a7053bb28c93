package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-run/daybook/internal/golden"
	"github.com/daybook-run/daybook/internal/lang"
)

// noFiles stands in for the file system: no test of a text depends on what lies beside it.
func noFiles(string) ([]byte, error) { return nil, fs.ErrNotExist }

// TestBroken compares what each broken file is told with its golden text, in both languages.
func TestBroken(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.yaml")
	if err != nil || len(files) < 80 {
		t.Fatalf("%d broken files, %v", len(files), err)
	}
	for _, path := range files {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = parse(name, src, noFiles)
			var faults Errors
			if !errors.As(err, &faults) {
				t.Fatalf("no faults, but %v", err)
			}
			for _, f := range faults {
				if f.Line == 0 || f.Column == 0 {
					t.Errorf("no position: %s", f)
				}
				if f.Hint == "" {
					t.Errorf("no remedy: %s", f)
				}
				if f.Excerpt == "" {
					t.Errorf("no excerpt: %s", f)
				}
			}
			base := strings.TrimSuffix(path, ".yaml")
			golden.Equal(t, base+".txt", faults.Error()+"\n")
			golden.Equal(t, base+".zh-CN.txt", faults.In(lang.For(lang.Chinese))+"\n")
		})
	}
}

// TestRisky compares what each file that is taken, and may surprise, is warned of with its golden text.
func TestRisky(t *testing.T) {
	files, err := filepath.Glob("testdata/risky/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f, err := parse(name, src, noFiles)
			if err != nil {
				t.Fatal(err)
			}
			var text, chinese strings.Builder
			for _, w := range f.Warnings {
				if w.Line == 0 || w.Column == 0 {
					t.Errorf("no position: %s", w)
				}
				text.WriteString(w.String() + "\n")
				chinese.WriteString(w.In(lang.For(lang.Chinese)) + "\n")
			}
			base := strings.TrimSuffix(path, ".yaml")
			golden.Equal(t, base+".txt", text.String())
			golden.Equal(t, base+".zh-CN.txt", chinese.String())
		})
	}
}
