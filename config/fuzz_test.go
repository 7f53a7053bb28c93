package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FuzzParse: whatever the text, the answer is a file or faults that have a place in it, and it comes.
func FuzzParse(f *testing.F) {
	paths, _ := filepath.Glob("testdata/broken/*.yaml")
	for _, path := range paths {
		src, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Add([]byte(head + "  a: {run: [./a], schedule: daily 02:00}\n"))
	f.Add([]byte(head + "  a:\n    shell: |\n      a\n      b\n    schedule: [daily 02:00, \"0 9 * * 1\"]\n    retry: {backoff: {first: 1m, times: 3}}\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		file, err := parse("x.yaml", src, noFiles)
		if err == nil {
			if len(file.Jobs) == 0 {
				t.Fatal("a file without jobs was taken")
			}
			for _, j := range file.Jobs {
				if faults := j.Check(); len(faults) > 0 {
					t.Fatalf("%s: %s", j.Name, faults[0].Err)
				}
			}
			return
		}
		var faults Errors
		if !errors.As(err, &faults) || len(faults) == 0 {
			t.Fatalf("%v", err)
		}
		for i, fault := range faults {
			if fault.Message == "" || i > 0 && fault.Line > 0 && fault.Line < faults[i-1].Line {
				t.Fatalf("%s", faults)
			}
		}
	})
}

// FuzzParseDuration: what is read is written back to something that reads the same.
func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"90s", "1h30m", "7d", "0", "106751d", "1d2h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDuration(s)
		if err != nil {
			return
		}
		if d < 0 {
			t.Fatalf("%q is negative: %d", s, d)
		}
		if again, err := ParseDuration(d.String()); err != nil || again != d {
			t.Fatalf("%q → %s → %v, %v", s, d, time.Duration(again), err)
		}
	})
}
