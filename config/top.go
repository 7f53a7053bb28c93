package config

import (
	"time"

	"github.com/daybook-run/daybook"
)

// topLevel is the top of the file while it is read.
type topLevel struct {
	file           *File
	defaults, jobs *node
	sawJobs        bool
	badZone        bool
	badChannels    bool // there are faults in them: what is missing is told already
	freezes        []freezeDraft
	toldOn         []reference // the channels that alerts name
}

// reference is a name and where it stands.
type reference struct {
	pos
	name string
	what daybook.Text
}

var topNames = []name[topLevel]{
	{about{"version", shape{words: "1", rule: object{{"const", 1}}}, "1", "format of this file"}, func(r *reader, t *topLevel, _, v *node) {
		if v.kind != isNumber || v.text != "1" {
			r.fault(v.pos, daybook.Invalid("version cannot be %s", v.shown()).WithHint("write version: 1; a file of a later version needs a newer Daybook"))
		}
	}},
	ofTop("name", "host name", "title, in alerts and on pages", aWord, func(f *File, v string) { f.Name = v }),
	ofTop("url", "none", "base of the links in alerts", webAddress, func(f *File, v string) { f.URL = v }),
	ofTop("lang", "en", "language of alerts", choice([]string{"en", "zh-CN"}), func(f *File, v string) { f.Lang = v }),
	{about{"timezone", zoneShape, "required unless every job has its own", "time zone of jobs; nothing falls back to the server's"}, func(r *reader, t *topLevel, _, v *node) {
		s, ok := r.zoneName(v, here("timezone"))
		t.file.Timezone, t.badZone = s, !ok
	}},
	{about{"database", shape{words: "URL or secret", rule: object{{"type", "string"}, {"pattern", "^(sqlite:|postgres(ql)?://)|" + referencePattern}}}, DefaultDatabase,
		"the ledger: sqlite:PATH, counted from the folder of this file, or postgres://… for several machines"}, readDatabase},
	{about{"slots", named(slotNames), "{live: 16, backfill: 4}", "runs at once of a process, by lane"}, func(r *reader, t *topLevel, _, v *node) {
		readMap(r, v, here("slots"), slotNames, nil, &t.file.Slots)
	}},
	{about{"defaults", shape{words: "map", names: defaultShape().names, from: "job"}, "none", "what jobs say that do not say it themselves: any name of a job but window, effects and formerly"},
		func(_ *reader, t *topLevel, _, v *node) { t.defaults = v }},
	{about{"retention", named(retentionNames), "{log: 30d, log_runs: none, activity: forever}", "how long is kept what may be forgotten; keys, dead letters and results that an undo needs are kept for good"},
		func(r *reader, t *topLevel, _, v *node) {
			readMap(r, v, here("retention"), retentionNames, nil, &t.file.Retention)
		}},
	{about{"channels", shape{words: "map of channels", names: named(channelNames).names, own: true}, "none", "ways to tell people, by name"}, func(r *reader, t *topLevel, _, v *node) { r.readChannels(v, t) }},
	{about{"alerts", named(alertNames), "none: alerts are rows only", "who is told"}, func(r *reader, t *topLevel, _, v *node) {
		readMap(r, v, here("alerts"), alertNames, laterAlerts, t)
	}},
	{about{"freeze", freezeShape(), "none", "spans in which nothing starts, no retry lands, and no probe or undo is sent"},
		func(r *reader, t *topLevel, _, v *node) { r.readFreezes(v, t) }},
	{about{"subjects", shape{words: "map of listings", names: named(listingNames).names, own: true}, "none", "listings of subjects, by name; a job names one, and is done for each of its subjects by itself"},
		func(r *reader, _ *topLevel, _, v *node) { r.readListings(v) }},
	{about{"jobs", shape{words: "map of jobs", names: named(jobNames).names, own: true, def: "job"}, required, "the jobs, by name: 1 to 64 of a-z 0-9 _ -; a name is part of every key"},
		func(_ *reader, t *topLevel, _, v *node) { t.jobs, t.sawJobs = v, true }},
}

// ofTop makes a name of the top whose value has one kind.
func ofTop[V any](word, unless, meaning string, v value[V], set func(*File, V)) name[topLevel] {
	return name[topLevel]{about{word, v.is, unless, meaning}, func(r *reader, t *topLevel, _, n *node) {
		if got, ok := v.read(r, n, here(word)); ok {
			set(t.file, got)
		}
	}}
}

func readDatabase(r *reader, t *topLevel, _, v *node) {
	s, ok := r.word(v, here("database"))
	if !ok {
		return
	}
	if err := CheckDatabase(s, false); err != nil {
		r.failed(v.pos, here("database"), err)
		return
	}
	t.file.Database = Secret{s}
}

var slotNames = []name[Slots]{
	ofSlots("live", "16", "runs at once of the lane live", 1, func(s *Slots, v int) { s.Live = v }),
	ofSlots("backfill", "4", "runs at once of the lane backfill; 0: none", 0, func(s *Slots, v int) { s.Backfill = v }),
}

func ofSlots(word, unless, meaning string, low int, set func(*Slots, int)) name[Slots] {
	v := number(low, 1000)
	return name[Slots]{about{word, v.is, unless, meaning}, func(r *reader, s *Slots, _, n *node) {
		if got, ok := v.read(r, n, here("slots", word)); ok {
			set(s, got)
		}
	}}
}

var retentionNames = []name[Retention]{
	{about{"log", durationShape(time.Second, "forever"), "30d", "attempts, outputs, payloads and step results"},
		func(r *reader, t *Retention, _, v *node) { r.keep(v, here("retention", "log"), &t.Log) }},
	{about{"log_runs", shape{words: "whole number or none", rule: object{{"anyOf", []any{numberShape(1, 1_000_000_000).rule, object{{"const", "none"}}}}}}, "none", "at most so many runs a job keep them"},
		func(r *reader, t *Retention, _, v *node) {
			if v.kind == isText && v.text == "none" {
				t.LogRuns = 0
				return
			}
			if n, ok := r.integer(v, here("retention", "log_runs"), 1, 1_000_000_000); ok {
				t.LogRuns = n
			}
		}},
	{about{"activity", durationShape(time.Second, "forever"), "forever", "who did what, why"}, func(r *reader, t *Retention, _, v *node) { r.keep(v, here("retention", "activity"), &t.Activity) }},
}

// keep reads how long something is kept: a duration of a day or more, or forever.
func (r *reader) keep(n *node, what daybook.Text, into *time.Duration) {
	if n.kind == isText && n.text == "forever" {
		*into = daybook.Forever
		return
	}
	if n.kind != isText && n.kind != isNumber {
		_ = r.wrong(n, what, aDuration).WithHint("write 30d, or forever")
		return
	}
	d, err := ParseDuration(n.text)
	switch {
	case err != nil:
		r.failed(n.pos, what, err)
	case time.Duration(d) < 24*time.Hour:
		r.fault(n.pos, daybook.Invalid("%s: %s is too short to look into a failure", what, d).WithHint("write at least 1d"))
	default:
		*into = time.Duration(d)
	}
}
