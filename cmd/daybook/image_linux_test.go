package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// image makes a small container image: a directory with the program, the shared libraries that it wants, and nothing
// else. In particular it has no zone data.
func image(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	into(t, root, program, "/daybook")
	maps, err := os.ReadFile("/proc/self/maps") // this is the same program: what it has loaded is what it wants
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		at := strings.IndexByte(line, '/')
		if at < 0 {
			continue
		}
		library := strings.TrimSpace(line[at:])
		if !strings.Contains(filepath.Base(library), ".so") {
			continue
		}
		into(t, root, library, library)
		// The loader is named in the program by another path.
		for _, dir := range []string{"/lib", "/lib64"} {
			if name := filepath.Join(dir, filepath.Base(library)); strings.HasPrefix(filepath.Base(library), "ld-") {
				into(t, root, library, name)
			}
		}
	}
	return root
}

// into copies a file into an image.
func into(t *testing.T, root, from, to string) {
	t.Helper()
	to = filepath.Join(root, to)
	if _, err := os.Stat(to); err == nil {
		return
	}
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}

// inImage runs the program with an image for its root directory.
func inImage(t *testing.T, root string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "/daybook", args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = "/", []string{"PATH=/", "HOME=/", "TZ=America/New_York", asProgram + "=1"}, &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if os.Getuid() != 0 { // as root of a namespace of its own
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	err := cmd.Run()
	if errors.Is(err, syscall.EPERM) {
		t.Skipf("not allowed to change the root directory here: %v", err)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// In an image without zone data every zone works by the embedded copy, and a name that is none is an error that names job
// and zone. Nothing falls back to UTC or to the machine's zone.
func TestH20AnImageWithoutZoneData(t *testing.T) {
	root := image(t)
	file := func(name, zone string) {
		text := fmt.Sprintf("version: 1\ndefaults: {owner: ops}\njobs:\n  invoices: {schedule: daily 09:00, run: [./a], timezone: %q}\n", zone)
		if zone == "none" {
			text = "version: 1\ndefaults: {owner: ops}\njobs:\n  invoices: {schedule: daily 09:00, run: [./a]}\n"
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file("right.yaml", "Europe/Luxembourg")
	r := inImage(t, root, "check", "right.yaml")
	if r.code != 0 || !strings.Contains(r.stdout, "Europe/Luxembourg time") {
		t.Fatalf("check: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r = inImage(t, root, "version", "--json"); r.code != 0 || !strings.Contains(r.stdout, `"tzdata_from":"embedded"`) {
		t.Errorf("the zone data is not the embedded one: %s%s", r.stdout, r.stderr)
	}
	r = inImage(t, root, "schedule", "fires", "daily 09:00", "--zone", "Europe/Luxembourg", "--from", "2026-03-28T00:00:00Z", "--to", "2026-03-29T12:00:00Z", "--json")
	if !strings.Contains(r.stdout, `"fire":"2026-03-28T08:00:00Z","local":"2026-03-28T09:00:00+01:00"`) ||
		!strings.Contains(r.stdout, `"fire":"2026-03-29T07:00:00Z","local":"2026-03-29T09:00:00+02:00"`) {
		t.Errorf("fires: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for zone, says := range map[string]string{"Europe/Luxemburg": `"Europe/Luxemburg" is unknown`, "CEST": `"CEST" is an abbreviation`, "": "time zone is empty", "none": "has no time zone"} {
		file("wrong.yaml", zone)
		for _, command := range [][]string{{"check", "wrong.yaml"}, {"serve", "-c", "wrong.yaml", "--db", "sqlite:/ledger.db"}} {
			r := inImage(t, root, command...)
			if r.code == 0 || !strings.Contains(r.stderr, "job invoices") || !strings.Contains(r.stderr, says) {
				t.Errorf("zone %q, daybook %s: exit %d\n%s%s", zone, command[0], r.code, r.stdout, r.stderr)
			}
		}
	}
}
