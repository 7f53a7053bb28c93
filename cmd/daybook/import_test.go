package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportWithoutCron: a machine without crontab(1) is told what else there is.
func TestImportWithoutCron(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, args := range [][]string{{"import", "crontab"}, {"init", "--from-crontab", filepath.Join(t.TempDir(), "x.yaml")}} {
		r := call(t, nil, args...)
		if r.code != 2 || r.stdout != "" || !strings.Contains(r.stderr, "crontab cannot be started") || !strings.Contains(r.stderr, "import crontab FILE") {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

// TestImportAsksWhichCron: where somebody can be asked, CRON_TZ is not guessed.
func TestImportAsksWhichCron(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "table")
	if err := os.WriteFile(path, []byte("CRON_TZ=Asia/Tokyo\n0 8 * * * x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		answer string
		args   []string
		zone   string
		asked  bool
	}{
		{"y\n", nil, "    timezone: Asia/Tokyo\n", true},
		{"\n", nil, "", true},
		{"", []string{"--obey-cron-tz"}, "    timezone: Asia/Tokyo\n", false},
		{"", []string{"--no-input"}, "", false},
	} {
		var out, errs bytes.Buffer
		a := testApp(&out, &errs)
		a.Stdin, a.Ask = strings.NewReader(c.answer), func() bool { return true }
		if code := a.run(context.Background(), append([]string{"import", "crontab", path}, c.args...)); code != 0 {
			t.Fatalf("%v: exit %d: %s", c.args, code, errs.String())
		}
		if asked := strings.Contains(errs.String(), "has been firing in Europe/Berlin. Was it cronie? [y/N]"); asked != c.asked {
			t.Errorf("%v: asked %t: %s", c.args, asked, errs.String())
		}
		if got := strings.Contains(out.String(), "    timezone: Asia/Tokyo\n"); got != (c.zone != "") {
			t.Errorf("%q %v:\n%s", c.answer, c.args, out.String())
		}
	}
}

// TestImportSystem reads the tables of this machine, if it has any.
func TestImportSystem(t *testing.T) {
	t.Parallel()
	r := call(t, nil, "import", "crontab", "--system")
	if r.code != 0 && (r.code != 2 || !strings.Contains(r.stderr, "→")) {
		t.Errorf("%+v", r)
	}
}

// TestScriptsOf: what run-parts would start.
func TestScriptsOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"b": 0o755, "a-1_x": 0o755, "no.sh": 0o755, "plain": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	names, err := scriptsOf(dir)
	if err != nil || strings.Join(names, " ") != "a-1_x b" {
		t.Errorf("%v %v", names, err)
	}
}
