package config

import (
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// freezeDraft is a freeze while it is read.
type freezeDraft struct {
	rule daybook.FreezeRule
	what daybook.Text
	at   pos // of its schedule
}

var freezeNames = []name[freezeDraft]{
	{about{"name", shape{words: "name", rule: object{{"type", "string"}, {"pattern", namePattern}}}, required, "what lists call it"}, func(r *reader, d *freezeDraft, _, v *node) {
		word, ok := r.word(v, in(d.what, "name"))
		if ok && daybook.CheckName(word) != nil {
			r.fault(v.pos, daybook.Invalid("%s: %s cannot name a freeze", d.what, quoted(word)).WithHint("1 to 64 lower-case letters, digits, '_' and '-'"))
		}
		d.rule.Name = word
	}},
	{about{"schedule", wordShape, required, "when it begins, in the time zone of the file"}, func(r *reader, d *freezeDraft, _, v *node) {
		d.rule.Schedule, _ = r.word(v, in(d.what, "schedule"))
		d.at = v.pos
	}},
	{about{"for", durationShape(time.Second, ""), required, "how long it lasts: at most 24h"}, func(r *reader, d *freezeDraft, _, v *node) {
		d.rule.For, _ = r.duration(v, in(d.what, "for"), time.Second)
	}},
	{about{"only", oneWord([]string{"P0"}), "everything is held", "P0: it holds nothing else"}, func(r *reader, d *freezeDraft, _, v *node) {
		word, _ := chosen(r, v, in(d.what, "only"), []string{string(daybook.P0)})
		d.rule.Only = daybook.Priority(word)
	}},
}

// freezeShape is a list of maps with these names.
func freezeShape() shape {
	s := named(freezeNames)
	s.words, s.list = "list of maps", true
	return s
}

// readFreezes reads the freezes of the file. Their schedules are read when the zone of the file is known.
func (r *reader) readFreezes(n *node, t *topLevel) {
	if n.kind != isList {
		r.fault(n.pos, daybook.Invalid("freeze must be a list, not %s", n.is()).WithHint(`such as freeze: [{name: deploy, schedule: "0 14 * * 1-5", for: 30m}]`))
		return
	}
	seen := map[string]bool{}
	for _, item := range n.items {
		before := r.count()
		d := freezeDraft{what: here("freeze"), at: item.pos}
		readMap(r, item, d.what, freezeNames, nil, &d)
		if r.count() > before {
			continue
		}
		for _, word := range []struct {
			name    string
			missing bool
		}{{"name", d.rule.Name == ""}, {"schedule", d.rule.Schedule == ""}, {"for", d.rule.For == 0}} {
			if word.missing {
				r.fault(item.pos, daybook.Invalid("%s: a freeze needs %s", d.what, word.name).WithHint(`such as {name: deploy, schedule: "0 14 * * 1-5", for: 30m}`))
			}
		}
		if seen[d.rule.Name] || d.rule.Name == daybook.HoldClock || d.rule.Name == "restored" {
			r.fault(item.pos, daybook.Invalid("%s: the name %s is taken", d.what, d.rule.Name).WithHint("give it another"))
		}
		seen[d.rule.Name] = true
		if r.count() == before {
			t.freezes = append(t.freezes, d)
		}
	}
}

// checkFreezes reads the schedules of the freezes.
func (r *reader) checkFreezes(t *topLevel) {
	for _, d := range t.freezes {
		if t.file.Timezone == "" {
			if !t.badZone {
				r.fault(d.at, daybook.Invalid("freeze %s has no time zone", d.rule.Name).WithHint("set timezone at the top: nothing falls back to the server's zone"))
			}
			continue
		}
		if _, err := calendar.CompileFreeze(d.rule, t.file.Timezone); err != nil {
			r.failed(d.at, daybook.Say("freeze %s", d.rule.Name), err)
			continue
		}
		t.file.Freezes = append(t.file.Freezes, d.rule)
	}
}
