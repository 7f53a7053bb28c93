package importer

import (
	"path"
	"slices"
	"strings"

	"github.com/daybook-run/daybook"
)

// Manager is what Systemd is told about where the units come from.
type Manager struct {
	Dir  string
	User bool // of a user's own manager
	// Enabled reports whether a timer is started at boot.
	Enabled func(timer string) bool
}

// Systemd imports the timers among units, each with its service.
func Systemd(units []Unit, m Manager, what string, o Options) Result {
	d := newDraft(o, what)
	d.notes = append(d.notes,
		"Time zone: "+o.Zone+", for timers that name none. Is it that of the machine on which they have fired so far? --zone names another.",
		"systemd gives a service a bare environment; here it gets what daybook serve was started with, and env.",
		"Which jobs touch money? Give them priority: P0, effects: once, and a probe or remembers: then a crash is asked about, never repeated.")
	if !m.User {
		d.notes = append(d.notes, "Services without User= ran as root: run daybook serve as root, or give them a user.")
	}
	byName := map[string]Unit{}
	for _, u := range units {
		byName[u.Name] = u
	}
	for _, u := range units {
		if path.Ext(u.Name) == ".timer" {
			(&timers{draft: d, units: byName, manager: m}).add(u)
		}
	}
	return d.result()
}

// timers makes jobs of timers.
type timers struct {
	*draft
	units   map[string]Unit
	manager Manager
}

// add makes the job of one timer, or says why not.
func (t *timers) add(u Unit) {
	file := u.Files[0].Path
	from := u.Name
	timer, err := u.parse()
	if err != nil {
		t.leave(file, 0, 0, from, err)
		return
	}
	if inst, template := instance(u.Name); template != "" && inst == "" {
		if t.instances(template) {
			return
		}
		t.leave(file, 0, 0, from, daybook.Invalid("%s is a template, and no instance of it stands here", clip(u.Name)).
			WithHint("systemctl list-timers names the instances: copy it to the name of one"))
		return
	}
	name := timer.last("Timer", "Unit")
	if name == "" {
		name = strings.TrimSuffix(u.Name, ".timer") + ".service"
	}
	s, err := t.service(name)
	if err != nil {
		t.leave(file, 0, 0, from, err)
		return
	}
	base := &job{name: strings.TrimSuffix(u.Name, ".timer"), from: from + " starts " + name}
	t.odds(timer, base)
	if err := s.fill(base); err != nil {
		t.leave(file, 0, 0, from+" starts "+name, err)
		return
	}
	base.off = t.systemctl() + " disable --now " + u.Name
	if t.manager.Enabled != nil && !t.manager.Enabled(u.Name) {
		base.notes = append(base.notes, "it is not enabled: systemd does not start it at boot")
	}
	t.schedule(timer, base, file)
}

// instances reports whether an instance of a template stands among the units.
func (t *timers) instances(template string) bool {
	for name := range t.units {
		if inst, of := instance(name); inst != "" && of == template {
			return true
		}
	}
	return false
}

func (t *timers) systemctl() string {
	if t.manager.User {
		return "systemctl --user"
	}
	return "systemctl"
}

// schedule adds a job for each zone that the timer names.
func (t *timers) schedule(timer *unit, base *job, file string) {
	forms := map[string][]string{}
	var zones []string
	put := func(zone string, list ...string) {
		if !slices.Contains(zones, zone) {
			zones = append(zones, zone)
		}
		for _, f := range list {
			if !slices.Contains(forms[zone], f) {
				forms[zone] = append(forms[zone], f)
			}
		}
	}
	failed := false
	for _, s := range timer.list("Timer", "OnCalendar") {
		c, err := parseOnCalendar(s.value)
		if err != nil {
			failed = true
			t.leave(s.file, s.line, 0, timer.name, err)
			continue
		}
		list, ok := c.forms()
		if !ok {
			failed = true
			err := daybook.Invalid("OnCalendar=%s is no form of Daybook", clip(s.value)).WithHint("%s", t.fires(c))
			t.leave(s.file, s.line, 0, timer.name, err)
			continue
		}
		put(c.zone, list...)
	}
	for _, key := range []string{"OnUnitActiveSec", "OnUnitInactiveSec"} {
		for _, s := range timer.list("Timer", key) {
			d, ok := parseSpan(s.value)
			if form := "every " + span(d); ok && check([]string{form}) == nil {
				put("", form)
				base.notes = append(base.notes, key+"="+s.value+": systemd counts from the last start or end; here every counts from the Unix epoch, so a restart moves nothing")
				continue
			}
			failed = true
			t.leave(s.file, s.line, 0, timer.name, daybook.Invalid("%s=%s is no distance that every can say", key, clip(s.value)).WithHint("whole seconds, up to a year"))
		}
	}
	if len(zones) == 0 {
		if !failed {
			t.leave(file, 0, 0, timer.name, daybook.Invalid("%s says no time that comes again", clip(timer.name)).
				WithHint("what starts at boot stays with systemd; add OnCalendar= for the rest"))
		}
		return
	}
	for _, zone := range zones {
		j := *base
		j.notes = slices.Clone(base.notes)
		j.schedule = forms[zone]
		if zone != t.o.Zone {
			j.zone = zone
		}
		t.draft.add(&j)
	}
}

// fires says when an expression fires next, for whoever has to find another way to say it.
func (t *timers) fires(c onCalendar) daybook.Text {
	next := c.next(t.o.Now, t.o.Zone)
	if len(next) == 0 {
		return daybook.Say("it does not fire in the next twenty years")
	}
	return daybook.Say("its next fires: %s; several lines, or a test in the command, may say it", strings.Join(next, ", "))
}

// odds takes the rest of a timer.
func (t *timers) odds(timer *unit, j *job) {
	j.missed = daybook.SkipMissed
	if truth(timer.last("Timer", "Persistent")) {
		j.missed = daybook.Coalesce
	}
	if v := timer.last("Timer", "RandomizedDelaySec"); v != "" {
		if d, ok := parseSpan(v); ok {
			j.jitter = d
		} else {
			j.notes = append(j.notes, "RandomizedDelaySec="+v+" cannot be read and is left out")
		}
	}
	for _, key := range []string{"OnBootSec", "OnStartupSec", "OnActiveSec", "OnClockChange", "OnTimezoneChange", "WakeSystem"} {
		if v := timer.last("Timer", key); v != "" && v != "false" && v != "no" && v != "0" {
			j.notes = append(j.notes, key+"="+v+" is left out: Daybook starts nothing because the machine or a clock did something")
		}
	}
	for _, row := range timer.odd {
		j.notes = append(j.notes, "a line that systemd passes over: "+row)
	}
}
