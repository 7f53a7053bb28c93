package importer

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// Table is one crontab.
type Table struct {
	Name   string // in places: a path, or "crontab"
	Text   []byte
	System bool   // the sixth field is the user, as in /etc/crontab and /etc/cron.d
	User   string // whose it is; empty: not known, or System
	Edit   string // how it is edited: "crontab -e"
}

// Crontab imports tables of cron. What names the call, for the first line of the file.
func Crontab(tables []Table, what string, o Options) Result {
	d := newDraft(o, what)
	d.nested = len(tables) > 1
	d.notes = append(d.notes,
		"Time zone: "+o.Zone+". Is it that of the machine on which cron has fired so far? --zone names another.",
		"A fire that was missed is run later, which cron never does: missed: skip leaves it out. A fire waits while the run before it works; cron starts both: overlap: allow does.",
		"cron gives a command HOME, LOGNAME, SHELL and PATH=/usr/bin:/bin. Here it gets what daybook serve was started with, and env.",
		"Which jobs touch money? Give them priority: P0, effects: once, and a probe or remembers: then a crash is asked about, never repeated.")
	mailed := false
	for _, t := range tables {
		r := &reader{draft: d, table: t}
		r.read()
		mailed = mailed || r.mail == nil && len(r.entries) > 0
	}
	if mailed {
		d.notes = append(d.notes, "Without MAILTO cron mails to the owner of the table what a command prints. Here it is kept, and nobody is told of a failure until there are channels and alerts.")
	}
	return d.result()
}

// reader reads one table.
type reader struct {
	*draft
	table Table
	line  int
	env   map[string]string
	zone  string        // CRON_TZ
	delay time.Duration // RANDOM_DELAY
	mail  *string       // MAILTO
	home  string        // HOME
	told  map[string]bool
}

func (r *reader) read() {
	r.env, r.told = map[string]string{}, map[string]bool{}
	text := string(r.table.Text)
	text = strings.TrimPrefix(text, "\ufeff")
	lines := strings.Split(text, "\n")
	for i, row := range lines {
		r.line = i + 1
		row = strings.TrimSuffix(row, "\r")
		trimmed := strings.TrimLeft(row, " \t")
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		if i == len(lines)-1 {
			r.note(r.place() + ": the last line does not end, so cron ignores it, or the whole table. It is imported all the same.")
		}
		if err := holdable(row); err != nil {
			r.leave(r.table.Name, r.line, 1, "", err)
			continue
		}
		if name, value, ok := assigned(row); ok {
			r.set(name, value)
			continue
		}
		r.entry(row, len(row)-len(trimmed))
	}
}

// place names the line, and the table where there are several.
func (r *reader) place() string {
	if r.nested {
		return r.table.Name + " line " + strconv.Itoa(r.line)
	}
	return "line " + strconv.Itoa(r.line)
}

// note adds to the notes at the top, once.
func (r *reader) note(text string) {
	if !r.told[text] {
		r.told[text] = true
		r.notes = append(r.notes, text)
	}
}

// assigned reads NAME = value, either in quotes that match. Nothing is expanded in it.
func assigned(row string) (name, value string, ok bool) {
	rest := strings.TrimLeft(row, " \t")
	if name, rest, ok = quotedOr(rest, " \t="); !ok || strings.Contains(name, "=") || name == "" {
		return "", "", false
	}
	rest = strings.TrimLeft(rest, " \t")
	if !strings.HasPrefix(rest, "=") {
		return "", "", false
	}
	rest = strings.TrimLeft(rest[1:], " \t")
	if rest == "" {
		return name, "", true
	}
	if rest[0] == '\'' || rest[0] == '"' {
		value, rest, ok = quotedOr(rest, "")
		return name, value, ok && strings.TrimLeft(rest, " \t") == ""
	}
	return name, strings.TrimRight(rest, " \t"), true
}

// quotedOr reads a text in quotes, or one that ends before any of the given signs.
func quotedOr(s, ends string) (text, rest string, ok bool) {
	if s == "" {
		return "", "", false
	}
	if q := s[0]; q == '\'' || q == '"' {
		end := strings.IndexByte(s[1:], q)
		if end < 0 {
			return "", "", false
		}
		return s[1 : 1+end], s[2+end:], true
	}
	end := strings.IndexAny(s, ends)
	if end < 0 {
		return "", "", false
	}
	return s[:end], s[end:], true
}

// set takes a variable: most are for the commands, some are for cron itself.
func (r *reader) set(name, value string) {
	switch name {
	case "MAILTO":
		r.mail = &value
		for _, to := range strings.FieldsFunc(value, func(c rune) bool { return c == ',' || c == ' ' }) {
			if !slices.Contains(r.mailTo, to) {
				r.mailTo = append(r.mailTo, to)
			}
		}
		if value == "" {
			r.note(r.place() + `: MAILTO="": nobody was mailed. Nobody is told of failures here either until there are channels and alerts.`)
		}
		return
	case "CRON_TZ":
		r.setZone(value)
		return
	case "RANDOM_DELAY":
		if n, err := strconv.Atoi(strings.TrimSpace(value)); err == nil && n >= 0 && n <= 24*60 {
			r.delay = time.Duration(n) * time.Minute
			return
		}
		r.note(r.place() + ": RANDOM_DELAY is no number of minutes and is left out.")
		return
	case "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING", "MLS_LEVEL", "START_HOURS_RANGE":
		r.note(r.place() + ": " + name + " is for cron alone and is left out.")
		return
	case "HOME":
		r.home = value
	case "TZ":
		r.note(r.place() + ": TZ is given to the commands, as cron does; it never moved a fire.")
	}
	if why := settable(name, value); why != "" {
		delete(r.env, name)
		r.note(r.place() + ": " + name + " is left out: " + why + ".")
		return
	}
	if strings.Contains(value, "$") {
		r.note(r.place() + ": " + name + "=" + value + ": cron expands nothing in it, and neither does Daybook.")
	}
	r.env[name] = value
}

// setZone takes CRON_TZ: which cron it is decides whether it counts.
func (r *reader) setZone(value string) {
	if _, err := calendar.Zone(value); err != nil {
		r.note(r.place() + ": CRON_TZ=" + value + " is no zone and is left out; cron uses UTC, or ignores it.")
		r.zone = ""
		return
	}
	r.zone = value
}

// entry imports one line. Columns count from the beginning of the row.
func (r *reader) entry(row string, indent int) {
	from := r.place() + ":  " + strings.TrimSpace(row)
	p, rest, err := r.timingOf(row, indent)
	if err != nil {
		r.leave(r.table.Name, r.line, indent+1, from, err)
		return
	}
	user := ""
	if r.table.System {
		if user, rest = cutWord(rest); rest == "" {
			r.leave(r.table.Name, r.line, len(row), from, daybook.Invalid("the command is missing behind the user %s", clip(user)).
				WithHint("is it the table of a user? then leave --system out"))
			return
		}
		if err := checkUser(user); err != nil {
			r.leave(r.table.Name, r.line, indent+1, from, err)
			return
		}
	}
	if strings.TrimSpace(rest) == "" {
		r.leave(r.table.Name, r.line, len(row), from, daybook.Invalid("the command is missing").WithHint("cron refuses it too"))
		return
	}
	command, stdin := splitPercent(rest)
	dir, parts := runParts(command)
	if parts && r.scripts(dir, p, user, from) {
		return
	}
	j := r.newJob(p, user, from)
	if parts {
		j.notes = append(j.notes, "run-parts starts the programs of "+dir+" one after the other: a job for each tells more, and daybook import crontab --system on that machine makes them")
	}
	j.name, j.stdin = nameOf(command), stdin
	if strings.TrimSpace(command) == "" {
		r.leave(r.table.Name, r.line, len(row), from, daybook.Invalid("the command is empty before the '%%'").WithHint("cron gives all behind the first '%%' to it as input; write \\%% for the sign itself"))
		return
	}
	j.setCommand(command, r.env["SHELL"])
	j.noteHabits(command)
	if stdin != "" {
		j.notes = append(j.notes, "what stands behind the '%' is its input")
	}
	if strings.Count(command, `"`)%2+strings.Count(command, "'")%2 > 0 && strings.ContainsAny(stdin, `"'`) {
		j.notes = append(j.notes, `the '%' cuts a quote in two: did the line ever work? for the sign itself cron wants \%`)
	}
	if first, more := cutWord(command); !r.table.System && first == "root" && more != "" {
		j.notes = append(j.notes, "it starts a program called root: is this a table of the system? then import it with --system")
	}
	r.add(j)
}

// timingOf reads when a line fires, and returns the rest of the row.
func (r *reader) timingOf(row string, indent int) (planned, string, error) {
	rest := row[indent:]
	if strings.HasPrefix(rest, "-") { // for cron: write nothing to the log
		rest = rest[1:]
		if strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, "\t") {
			return planned{}, "", daybook.Invalid("a space stands behind the '-'").WithHint("cron refuses it too")
		}
	}
	if strings.HasPrefix(rest, "@") {
		word, rest := cutWord(rest)
		if word == "@reboot" {
			return planned{}, "", daybook.Invalid("@reboot names no time, so there is no window a run could answer for").
				WithHint("leave it in the crontab, or give it to the machine's service manager")
		}
		form, ok := cronWords[word]
		if !ok {
			return planned{}, "", daybook.Invalid("%s is unknown to cron", clip(word)).WithHint("known are @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually")
		}
		return planned{schedule: []string{form}}, rest, nil
	}
	var texts [5]string
	var columns [5]int
	for i := range texts {
		rest = strings.TrimLeft(rest, " \t")
		columns[i] = len(row) - len(rest) + 1
		if texts[i], rest = cutWord(rest); texts[i] == "" {
			return planned{}, "", at(daybook.Invalid("the %s is missing", cronFields[i].name).
				WithHint("a line has five fields and a command; comments stand on lines of their own"), columns[i])
		}
	}
	t, err := parseTiming(texts, columns)
	if err != nil {
		return planned{}, "", err
	}
	p, err := t.plan()
	return p, rest, err
}

// cutWord returns the first word, and what stands behind it and its spaces.
func cutWord(s string) (word, rest string) {
	end := strings.IndexAny(s, " \t")
	if end < 0 {
		return s, ""
	}
	return s[:end], strings.TrimLeft(s[end:], " \t")
}

// newJob makes a job that fires as the line does, with what stands before it in the table.
func (r *reader) newJob(p planned, user, from string) *job {
	j := &job{from: from, schedule: p.schedule, jitter: p.jitter, notes: slices.Clone(p.notes), user: user, env: maps.Clone(r.env)}
	if r.delay > 0 {
		j.jitter += r.delay
		j.notes = append(j.notes, "RANDOM_DELAY: up to "+span(r.delay)+"; the jitter is fixed for a key")
	}
	if r.zone != "" && r.zone != r.o.Zone {
		if r.o.ObeyZone {
			j.zone = r.zone
			j.notes = append(j.notes, "CRON_TZ="+r.zone+", which cronie obeys; Debian's cron ignores it, and fires in "+r.o.Zone)
		} else {
			j.notes = append(j.notes, "CRON_TZ="+r.zone+" is ignored by Debian's cron: it has been firing in "+r.o.Zone+". If yours is cronie, add timezone: "+r.zone)
		}
	}
	j.dir = r.home
	if j.dir == "" && r.o.Home != nil {
		owner := user
		if owner == "" {
			owner = r.table.User
		}
		if owner != "" {
			j.dir = r.o.Home(owner)
		}
	}
	j.dir = place(j.dir)
	j.off = r.table.Edit + "    # comment out " + strings.TrimPrefix(from, r.table.Name+" ")
	return j
}

// runParts returns the directory whose programs a command starts, if that is all it is about.
func runParts(command string) (string, bool) {
	words := strings.Fields(strings.NewReplacer("(", " ", ")", " ", ";", " ", "{", " ", "}", " ").Replace(command))
	i := slices.IndexFunc(words, func(w string) bool { return path.Base(w) == "run-parts" })
	if i < 0 {
		return "", false
	}
	for _, before := range words[:i] {
		if !slices.Contains([]string{"cd", "/", "&&", "||", "test", "-x", "/usr/sbin/anacron", "[", "]", "nice", "ionice", "exec"}, before) && !strings.HasPrefix(before, "-") {
			return "", false
		}
	}
	rest := words[i+1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		if strings.HasPrefix(rest[0], "--arg") || rest[0] == "-a" || strings.HasPrefix(rest[0], "--test") || strings.HasPrefix(rest[0], "--regex") {
			return "", false
		}
		rest = rest[1:]
	}
	if len(rest) != 1 || !path.IsAbs(rest[0]) {
		return "", false
	}
	return path.Clean(rest[0]), true
}

// scripts imports a job for each program of a directory, as run-parts starts them.
func (r *reader) scripts(dir string, p planned, user, from string) bool {
	if r.o.Scripts == nil {
		return false
	}
	names, err := r.o.Scripts(dir)
	if err != nil || len(names) == 0 {
		return false
	}
	for _, name := range names {
		j := r.newJob(p, user, from)
		j.name, j.dir = name, "/"
		j.run = []string{path.Join(dir, name)}
		j.notes = append(j.notes, "one of the "+counted(len(names), "program")+" in "+dir+" that run-parts starts one after the other; one that is added there later is not seen")
		if strings.Contains(from, "anacron") {
			j.notes = append(j.notes, "where anacron is installed it starts them, and may be hours later: look into /etc/anacrontab")
		}
		r.add(j)
	}
	return true
}
