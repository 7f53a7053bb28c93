package config

import (
	"net/url"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// topLevel is the top of the file while it is read.
type topLevel struct {
	file           *File
	defaults, jobs *node
	sawJobs        bool
	badZone        bool
	badChannels    bool        // there are faults in them: what is missing is told already
	toldOn         []reference // the channels that alerts name
}

// reference is a name and where it stands.
type reference struct {
	pos
	name, what string
}

var topNames = []name[topLevel]{
	{"version", func(r *reader, t *topLevel, _, v *node) {
		if v.kind != isNumber || v.text != "1" {
			r.fault(v.pos, "write version: 1; a file of a later version needs a newer Daybook", "version cannot be %s", v.shown())
		}
	}},
	{"name", func(r *reader, t *topLevel, _, v *node) {
		if s, ok := r.word(v, "name"); ok {
			t.file.Name = s
		}
	}},
	{"url", func(r *reader, t *topLevel, _, v *node) {
		if s, ok := r.webAddress(v, "url"); ok {
			t.file.URL = s
		}
	}},
	{"lang", func(r *reader, t *topLevel, _, v *node) {
		if s, ok := choice(r, v, "lang", "en", "zh-CN"); ok {
			t.file.Lang = s
		}
	}},
	{"timezone", func(r *reader, t *topLevel, _, v *node) {
		s, ok := r.zoneName(v, "timezone")
		t.file.Timezone, t.badZone = s, !ok
	}},
	{"database", func(r *reader, t *topLevel, _, v *node) {
		s, ok := r.word(v, "database")
		if !ok {
			return
		}
		if err := CheckDatabase(s, false); err != nil {
			r.failed(v.pos, "database", err)
			return
		}
		t.file.Database = Secret{s}
	}},
	{"slots", func(r *reader, t *topLevel, _, v *node) { readMap(r, v, "slots", slotNames, nil, &t.file.Slots) }},
	{"defaults", func(r *reader, t *topLevel, _, v *node) { t.defaults = v }},
	{"retention", func(r *reader, t *topLevel, _, v *node) {
		readMap(r, v, "retention", retentionNames, nil, &t.file.Retention)
	}},
	{"channels", func(r *reader, t *topLevel, _, v *node) { r.readChannels(v, t) }},
	{"alerts", func(r *reader, t *topLevel, _, v *node) { readMap(r, v, "alerts", alertNames, laterAlerts, t) }},
	{"jobs", func(r *reader, t *topLevel, _, v *node) { t.jobs, t.sawJobs = v, true }},
}

var slotNames = []name[Slots]{
	{"live", func(r *reader, s *Slots, _, v *node) {
		if n, ok := r.integer(v, "slots: live", 1, 1000); ok {
			s.Live = n
		}
	}},
	{"backfill", func(r *reader, s *Slots, _, v *node) {
		if n, ok := r.integer(v, "slots: backfill", 0, 1000); ok {
			s.Backfill = n
		}
	}},
}

var retentionNames = []name[Retention]{
	{"log", func(r *reader, t *Retention, _, v *node) { r.keep(v, "retention: log", &t.Log) }},
	{"log_runs", func(r *reader, t *Retention, _, v *node) {
		if v.kind == isText && v.text == "none" {
			t.LogRuns = 0
			return
		}
		if n, ok := r.integer(v, "retention: log_runs", 1, 1_000_000_000); ok {
			t.LogRuns = n
		}
	}},
	{"activity", func(r *reader, t *Retention, _, v *node) { r.keep(v, "retention: activity", &t.Activity) }},
}

// keep reads how long something is kept: a duration of a day or more, or forever.
func (r *reader) keep(n *node, what string, into *time.Duration) {
	if n.kind == isText && n.text == "forever" {
		*into = daybook.Forever
		return
	}
	if n.kind != isText && n.kind != isNumber {
		r.wrong(n, what, "a duration", "write 30d, or forever")
		return
	}
	d, err := ParseDuration(n.text)
	switch {
	case err != nil:
		r.failed(n.pos, what, err)
	case time.Duration(d) < 24*time.Hour:
		r.fault(n.pos, "write at least 1d", "%s: %s is too short to look into a failure", what, d)
	default:
		*into = time.Duration(d)
	}
}

// zoneName reads the name of a time zone that exists.
func (r *reader) zoneName(n *node, what string) (string, bool) {
	s, ok := r.textual(n, what, false)
	if !ok {
		return "", false
	}
	if _, err := calendar.Zone(s); err != nil {
		r.failed(n.pos, what, err)
		return "", false
	}
	return s, true
}

// webAddress reads an absolute http or https URL.
func (r *reader) webAddress(n *node, what string) (string, bool) {
	s, ok := r.word(n, what)
	if !ok {
		return "", false
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		r.fault(n.pos, "write it with http:// or https://", "%s is no web address", what)
		return "", false
	}
	if _, secret := u.User.Password(); secret {
		r.fault(n.pos, "leave it out: this address is shown in alerts", "%s holds a password", what)
		return "", false
	}
	return s, true
}
