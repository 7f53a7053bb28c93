package calendar

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // the fallback of a machine or image without zone data

	"github.com/daybook-run/daybook"
)

// zoneNames is the list of zone names of the embedded copy, one a line: for the nearest name, and for walking all of
// them. A zone that is not in it but in the system's newer data works all the same.
//
//go:embed data/zones.txt
var zoneNames string

// Zones returns the names of all zones of the embedded copy, in order.
func Zones() []string { return slices.Clone(knownZones()) }

var knownZones = sync.OnceValue(func() []string { return strings.Fields(zoneNames) })

// zonesRead keeps the zones that were used: each is read once a process, so that a hundred thousand jobs have one copy of its
// data, and the same.
var zonesRead sync.Map // name → *time.Location

// Zone returns the time zone of an IANA name, such as Europe/Berlin or UTC: the system's data if present, else the
// embedded copy. Nothing falls back to the machine's own zone. Errors have CodeInvalid and name the remedy: an empty
// name, Local, an abbreviation (CEST, EST), an offset, or an unknown name (with the nearest known one).
func Zone(name string) (*time.Location, error) {
	if loc, ok := zonesRead.Load(name); ok {
		return loc.(*time.Location), nil
	}
	switch {
	case name == "":
		return nil, daybook.Invalid("the time zone is empty").
			WithHint("set timezone to an IANA name, such as Europe/Berlin: nothing falls back to the server's zone")
	case strings.EqualFold(name, "local"):
		return nil, daybook.Invalid("time zone %q would be that of the server", name).
			WithHint("set timezone to an IANA name, such as Europe/Berlin: keys must not depend on the machine")
	}
	short := daybook.Clip(name, 60)
	if hint, ok := abbreviation(name); ok {
		return nil, daybook.Invalid("time zone %q is an abbreviation, not a place with its rules", short).WithHint("use %s", hint)
	}
	if strings.HasPrefix(name, "posix/") || strings.HasPrefix(name, "right/") {
		_, plain, _ := strings.Cut(name, "/")
		return nil, daybook.Invalid("time zone %q is a variant of the data files, not a zone", short).WithHint("use %s", plain)
	}
	known := knownZones()
	_, found := slices.BinarySearch(known, name)
	if !found {
		for _, k := range known {
			// Only file systems that ignore case would find it: the name must mean the same everywhere.
			if strings.EqualFold(k, name) {
				return nil, unknownZone(short, k)
			}
		}
	}
	loc, err := time.LoadLocation(name)
	if err != nil || name == "Factory" || name == "localtime" || name == "posixrules" {
		return nil, unknownZone(short, nearestZone(name, known))
	}
	zonesRead.Store(name, loc)
	return loc, nil
}

func unknownZone(name, near string) error {
	err := daybook.Invalid("time zone %q is unknown", name)
	if offset.MatchString(name) {
		return err.WithHint("use the name of a place, such as Asia/Shanghai, or UTC: an offset has no rules")
	}
	if near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	if strings.ContainsAny(name, "+-0123456789") {
		return err.WithHint("use the name of a place, such as Asia/Shanghai, or UTC: an offset has no rules")
	}
	return err.WithHint("use an IANA name, such as Europe/Berlin, Asia/Shanghai or UTC")
}

// offset is what names a distance to UTC and no place.
var offset = regexp.MustCompile(`(?i)^(utc|gmt)?\s*[+-]\s*\d{1,2}(:?\d\d)?$`)

// elsewhere are places that people look for and that zones are not named after.
var elsewhere = map[string]string{
	"z": "UTC", "beijing": "Asia/Shanghai", "peking": "Asia/Shanghai", "shenzhen": "Asia/Shanghai", "guangzhou": "Asia/Shanghai", "delhi": "Asia/Kolkata", "new_delhi": "Asia/Kolkata",
	"mumbai": "Asia/Kolkata", "bangalore": "Asia/Kolkata", "munich": "Europe/Berlin", "frankfurt": "Europe/Berlin", "hamburg": "Europe/Berlin",
	"geneva": "Europe/Zurich", "milan": "Europe/Rome", "barcelona": "Europe/Madrid", "san_francisco": "America/Los_Angeles", "seattle": "America/Los_Angeles",
	"boston": "America/New_York", "washington": "America/New_York", "miami": "America/New_York", "atlanta": "America/New_York", "dallas": "America/Chicago",
	"houston": "America/Chicago", "austin": "America/Chicago",
}

// nearestZone compares the whole name, then the city alone: "Berlin" means Europe/Berlin.
func nearestZone(name string, known []string) string {
	if len(name) > 60 {
		return ""
	}
	place := strings.ToLower(strings.ReplaceAll(name[strings.LastIndexByte(name, '/')+1:], " ", "_"))
	if near, ok := elsewhere[place]; ok {
		return near
	}
	if near := daybook.Nearest(name, known); near != "" {
		return near
	}
	city := name[strings.LastIndexByte(name, '/')+1:]
	city = strings.ReplaceAll(city, " ", "_")
	if len(city) < 4 {
		return ""
	}
	for _, k := range known {
		if strings.EqualFold(k[strings.LastIndexByte(k, '/')+1:], city) {
			return k
		}
	}
	return ""
}

// abbreviation tells names that look like zones and are not places. EST, MST and HST exist in the data as fixed offsets
// without summer time, which is not what whoever writes them means.
func abbreviation(name string) (hint daybook.Text, ok bool) {
	switch strings.ToUpper(name) {
	case "EST", "EDT":
		return daybook.Say("America/New_York (EST is five hours behind UTC all year)"), true
	case "CST", "CDT":
		return daybook.Say("%s or %s", "America/Chicago", "Asia/Shanghai"), true
	case "MST", "MDT":
		return daybook.Say("%s or %s", "America/Denver", "America/Phoenix"), true
	case "PST", "PDT":
		return daybook.Say("%s", "America/Los_Angeles"), true
	case "HST":
		return daybook.Say("%s", "Pacific/Honolulu"), true
	case "AKST", "AKDT":
		return daybook.Say("%s", "America/Anchorage"), true
	case "CET", "CEST", "MET", "MEST", "MESZ", "MEZ":
		return daybook.Say("the place, such as %s or %s", "Europe/Berlin", "Europe/Paris"), true
	case "EET", "EEST":
		return daybook.Say("the place, such as %s or %s", "Europe/Helsinki", "Europe/Athens"), true
	case "WET", "WEST":
		return daybook.Say("the place, such as %s", "Europe/Lisbon"), true
	case "BST":
		return daybook.Say("%s", "Europe/London"), true
	case "IST":
		return daybook.Say("%s, %s or %s", "Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"), true
	case "JST":
		return daybook.Say("%s", "Asia/Tokyo"), true
	case "KST":
		return daybook.Say("%s", "Asia/Seoul"), true
	case "SGT":
		return daybook.Say("%s", "Asia/Singapore"), true
	case "HKT":
		return daybook.Say("%s", "Asia/Hong_Kong"), true
	case "MSK":
		return daybook.Say("%s", "Europe/Moscow"), true
	case "AEST", "AEDT":
		return daybook.Say("%s or %s", "Australia/Sydney", "Australia/Brisbane"), true
	case "ACST", "ACDT":
		return daybook.Say("%s or %s", "Australia/Adelaide", "Australia/Darwin"), true
	case "AWST":
		return daybook.Say("%s", "Australia/Perth"), true
	case "NZST", "NZDT":
		return daybook.Say("%s", "Pacific/Auckland"), true
	case "BRT":
		return daybook.Say("%s", "America/Sao_Paulo"), true
	}
	return daybook.Text{}, false
}

// TZData returns the version of the zone data in use and where it comes from: a directory or file of the system, or
// "embedded". The version is that of the IANA release (2025b) where the data says it, else "files-" and a digest of the
// data of all zones, so that two nodes can be compared; for the copy inside Go it is Go's own version (go1.26.8).
func TZData() (version, source string) {
	for _, dir := range zoneDirs() {
		info, err := os.Stat(dir)
		if err != nil {
			continue
		}
		if !info.IsDir() { // a zip file, such as Go's own
			return digestOf([]string{dir}), dir
		}
		if _, err := os.Stat(filepath.Join(dir, "Europe", "London")); err != nil {
			continue
		}
		return dirVersion(dir), strings.TrimSuffix(dir, "/")
	}
	return runtime.Version(), "embedded"
}

// zoneDirs lists the places where package time looks for zone data, in its order.
func zoneDirs() []string {
	dirs := []string{"/usr/share/zoneinfo/", "/usr/share/lib/zoneinfo/", "/usr/lib/locale/TZ/", "/etc/zoneinfo/"}
	if z := os.Getenv("ZONEINFO"); z != "" {
		dirs = append([]string{z}, dirs...)
	}
	return dirs
}

func dirVersion(dir string) string {
	if b, err := os.ReadFile(filepath.Join(dir, "+VERSION")); err == nil {
		if v := strings.TrimSpace(string(b)); v != "" && len(v) <= 20 {
			return v
		}
	}
	if f, err := os.Open(filepath.Join(dir, "tzdata.zi")); err == nil {
		defer f.Close()
		head := make([]byte, 64)
		n, _ := f.Read(head)
		line, _, _ := strings.Cut(string(head[:n]), "\n")
		if v, ok := strings.CutPrefix(line, "# version "); ok && v != "" {
			return strings.TrimSpace(v)
		}
	}
	var files []string
	for _, z := range Zones() {
		files = append(files, filepath.Join(dir, filepath.FromSlash(z)))
	}
	return digestOf(files)
}

func digestOf(files []string) string {
	h := sha256.New()
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil {
			h.Write(b)
		}
	}
	return "files-" + hex.EncodeToString(h.Sum(nil)[:4])
}

// zone finds instants of wall-clock times. Wall-clock times are seconds since 1970-01-01 00:00 of the same clock, so
// that no arithmetic on them knows of zones.
type zone struct{ loc *time.Location }

// reach is more than any offset from UTC was or will be: instants of a wall-clock time lie within it.
const reach = 26 * 60 * 60

// span returns the offset at t and the first instant after t at which the zone's data has an entry, which may or may not
// change the offset. There may be none.
func (z zone) span(t int64) (offset int, end int64, ok bool) {
	u := time.Unix(t, 0).In(z.loc)
	_, offset = u.Zone()
	_, e := u.ZoneBounds()
	if e.IsZero() {
		return offset, 0, false
	}
	return offset, e.Unix(), true
}

func (z zone) offset(t int64) int {
	_, offset := time.Unix(t, 0).In(z.loc).Zone()
	return offset
}

// date returns the civil date at t.
func (z zone) date(t int64) date { return dateOfLocal(t + int64(z.offset(t))) }

// probeStep is the pace at which changes are looked for where ZoneBounds does not tell them.
const probeStep = 60 * 60

// change returns the offset at t and the first instant in (t, limit] at which it changes, if there is one.
//
// ZoneBounds alone does not do: with rules in place of a table (which the embedded copy has) its end may be the end of a
// year, where nothing changes, and on 31 December of leap years it is not later than the instant asked, so that a loop
// over it stands still. Offsets are right always: they decide, and the way is walked in steps where no end leads on.
func (z zone) change(t, limit int64) (offset int, at int64, ok bool) {
	offset, end, more := z.span(t)
	for from := t; more && from < limit; {
		if end <= from {
			end = from + probeStep
			if z.offset(end) != offset {
				end = z.bisect(from, end, offset)
			}
		}
		if end > limit {
			return offset, 0, false
		}
		now, next, m := z.span(end)
		if now != offset {
			return offset, end, true
		}
		from, end, more = end, next, m
	}
	return offset, 0, false
}

// bisect returns the first instant in (lo, hi] whose offset differs from that of lo.
func (z zone) bisect(lo, hi int64, offset int) int64 {
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		if z.offset(mid) == offset {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// reading says which instants show a wall-clock time.
type reading struct {
	first, last int64 // equal unless the time occurs more than once; the end of the gap if it does not exist
	gap, repeat bool
}

// read finds the instants of a wall-clock time: for one that does not exist, the first instant after the gap.
func (z zone) read(local int64) reading {
	from, limit := local-reach, local+reach
	offset, change, ok := z.change(from, limit)
	if !ok {
		return reading{first: local - int64(offset), last: local - int64(offset)}
	}
	var r reading
	found, gapFound := false, false
	var gapEnd int64
	start := from
	for {
		if t := local - int64(offset); t >= start && (!ok || t < change) {
			if !found {
				r.first, found = t, true
			} else {
				r.repeat = true
			}
			r.last = t
		}
		if !ok {
			break
		}
		next, nextChange, more := z.change(change, limit)
		if !gapFound && change+int64(offset) <= local && local < change+int64(next) {
			gapEnd, gapFound = change, true
		}
		start, offset, change, ok = change, next, nextChange, more
	}
	if !found {
		return reading{first: gapEnd, last: gapEnd, gap: true}
	}
	return r
}

// start returns the first instant of the date, or the first after it if the date does not exist.
func (z zone) start(d date) int64 { return z.read(d.seconds()).first }

// exists reports whether the dates in [from, to) have an instant.
func (z zone) exists(from, to date) bool { return z.start(from) < z.start(to) }

// quiet reports whether the offset stays the same in [from, to].
func (z zone) quiet(from, to int64) bool {
	_, _, changes := z.change(from, to)
	return !changes
}
