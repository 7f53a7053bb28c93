package calendar

import (
	"archive/zip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// embeddedZip is the copy of zone data that package time/tzdata embeds, as the toolchain ships it.
func embeddedZip(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	root := strings.TrimSpace(string(out))
	if err != nil || root == "" {
		t.Fatalf("go env GOROOT: %q, %v", root, err)
	}
	path := filepath.Join(root, "lib", "time", "zoneinfo.zip")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the toolchain's zone data: %v", err)
	}
	return path
}

// embeddedData reads it once; tests only.
var embeddedData = sync.OnceValues(func() (map[string][]byte, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	r, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(out)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := map[string][]byte{}
	for _, f := range r.File {
		rc, err := f.Open()
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(rc)
		rc.Close()
		if err != nil {
			return nil, err
		}
		data[f.Name] = b
	}
	return data, nil
})

// embedded returns a zone as a machine without zone data would see it.
func embedded(t testing.TB, name string) *time.Location {
	t.Helper()
	data, err := embeddedData()
	if err != nil {
		t.Fatal(err)
	}
	loc, err := time.LoadLocationFromTZData(name, data[name])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return loc
}

func TestCalendarCasesWithEmbeddedData(t *testing.T) {
	for _, c := range caseRows(t) {
		c.check(t, embedded(t, c.zone))
	}
}

// The tests run once more in a process for which package time takes the embedded copy before that of the system.
func TestAgainWithEmbeddedData(t *testing.T) {
	if os.Getenv("ZONEINFO") != "" {
		version, source := TZData()
		if !strings.HasSuffix(source, "zoneinfo.zip") || !strings.HasPrefix(version, "files-") {
			t.Errorf("TZData() = %s, %s", version, source)
		}
		t.Skip("this is the process")
	}
	if testing.Short() {
		t.Skip("short")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^(TestH|TestCalendar|TestNuuk|TestAgain|TestZone|TestGap)", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), "ZONEINFO="+embeddedZip(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestZoneNamesAreThoseOfTheEmbeddedData(t *testing.T) {
	data, err := embeddedData()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, name := range Zones() {
		known[name] = true
		if _, ok := data[name]; !ok {
			t.Errorf("%s is no longer in the embedded data", name)
		}
	}
	for name := range data {
		if !known[name] && !strings.HasSuffix(name, "/") && name != "Factory" {
			t.Errorf("data/zones.txt misses %s", name)
		}
	}
}

func TestTZDataNamesVersionAndSource(t *testing.T) {
	version, source := TZData()
	if version == "" || source == "" {
		t.Errorf("TZData() = %q, %q", version, source)
	}
	t.Logf("zone data %s from %s", version, source)
	dir := t.TempDir()
	for _, c := range []struct{ file, content, want string }{
		{"", "", "files-"},
		{"tzdata.zi", "# version 2031a\nR", "2031a"},
		{"+VERSION", "2031b\n", "2031b"},
	} {
		if c.file != "" {
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := dirVersion(dir); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.file, got, c.want)
		}
	}
}

// changes lists all changes of the offset in (from, to].
func changes(z zone, from, to int64) []int64 {
	var out []int64
	for {
		_, c, ok := z.change(from, to)
		if !ok {
			return out
		}
		out = append(out, c)
		from = c
	}
}

// The way along ZoneBounds finds every change that walking hour by hour finds.
func TestZoneChangesAgreeWithWalking(t *testing.T) {
	years := [2]int{2023, 2029}
	names := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca",
		"America/Nuuk", "Asia/Gaza", "Antarctica/Troll", "Pacific/Kwajalein", "Asia/Kolkata", "Europe/Dublin"}
	if full() {
		years, names = [2]int{1900, 2101}, distinctZones(t)
	}
	from, to := newDate(years[0], 1, 1).seconds(), newDate(years[1], 1, 1).seconds()
	for _, name := range names {
		z := zone{embedded(t, name)}
		var walked []int64
		last := z.offset(from)
		for u := from; u < to; u += 3600 {
			if o := z.offset(u + 3600); o != last {
				walked = append(walked, z.bisect(u, u+3600, last))
				last = o
			}
		}
		found := changes(z, from, to)
		if len(found) != len(walked) {
			t.Errorf("%s: %d changes, walking finds %d", name, len(found), len(walked))
			continue
		}
		for i := range found {
			if found[i] != walked[i] {
				t.Errorf("%s: change at %d, walking finds %d", name, found[i], walked[i])
			}
		}
	}
}

// full reports whether the long tests were asked for: DAYBOOK_FULL=1.
func full() bool { return os.Getenv("DAYBOOK_FULL") != "" }

// distinctZones returns one name for each content of the data: links are left out.
func distinctZones(t testing.TB) []string {
	t.Helper()
	data, err := embeddedData()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var out []string
	for _, name := range Zones() {
		if b := string(data[name]); !seen[b] {
			seen[b] = true
			out = append(out, name)
		}
	}
	return out
}
