package importer

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daybook-run/daybook"
)

// Options is what the texts do not say themselves.
type Options struct {
	Zone  string // IANA name of the zone of the machine
	Owner string // of all jobs
	// ObeyZone says that CRON_TZ moved the fires, as with cronie. Debian's cron ignores it.
	ObeyZone bool
	// Home returns the home directory of a user, "" when it is not known.
	Home func(user string) string
	// Scripts lists the programs that run-parts would start in a directory. An error says that it cannot be looked into.
	Scripts func(dir string) ([]string, error)
	// Now is when the notes about coming fires begin.
	Now time.Time
}

// Result is what came out.
type Result struct {
	YAML []byte
	Jobs []string // names, in the order of the file
	Left []Left   // what could not be imported, in order; each stands in the file as a comment
	// Users are the users that jobs run as; only root may do so for others.
	Users []string
}

// Left is something that could not be imported.
type Left struct {
	File         string
	Line, Column int   // from 1; 0: the file as a whole
	Err          error // what, and what to do about it
}

// Place is file:line:column, as far as it is known.
func (l Left) Place() string {
	place := l.File
	if l.Line > 0 {
		place += ":" + strconv.Itoa(l.Line)
	}
	if l.Column > 0 {
		place += ":" + strconv.Itoa(l.Column)
	}
	return place
}

// job is a job before it is written.
type job struct {
	name     string
	from     string   // what it was there, for a comment above it
	notes    []string // oddities
	schedule []string
	zone     string // empty: that of the file
	missed   daybook.Missed
	jitter   time.Duration
	run      []string
	shell    string
	stdin    string
	user     string
	dir      string
	timeout  string            // as written; empty: that of the file
	env      map[string]string // all of it
	off      string            // how to switch the old one off
}

// left is a place of the file at which something could not be imported.
type left struct {
	from string
	Left
}

// entry is a job or what was left out, in the order of the source.
type entry struct {
	job  *job
	left *left
}

// draft is a file while it is put together.
type draft struct {
	o       Options
	what    string   // the command that makes it, and of what
	notes   []string // for the top
	mailTo  []string
	entries []entry
	names   map[string]bool
	nested  bool // the names of the files matter: there are several
}

func newDraft(o Options, what string) *draft {
	return &draft{o: o, what: what, names: map[string]bool{}}
}

// add adds a job under the nearest free name.
func (d *draft) add(j *job) {
	wanted := sanitize(j.name)
	j.name = wanted
	for n := 2; d.names[j.name]; n++ {
		j.name = fmt.Sprintf("%s-%d", wanted, n)
	}
	d.names[j.name] = true
	d.entries = append(d.entries, entry{job: j})
}

// leave records that something could not be imported.
func (d *draft) leave(file string, line, column int, from string, err error) {
	l := &left{from: from, Left: Left{File: file, Line: line, Column: column, Err: err}}
	var place *located
	if errors.As(err, &place) {
		l.Column, l.Err = place.column, place.fault
	}
	d.entries = append(d.entries, entry{left: l})
}

func (d *draft) jobs() (list []*job) {
	for _, e := range d.entries {
		if e.job != nil {
			list = append(list, e.job)
		}
	}
	return list
}

// result writes the file.
func (d *draft) result() Result {
	var r Result
	users := map[string]bool{}
	for _, e := range d.entries {
		if e.left != nil {
			r.Left = append(r.Left, e.left.Left)
			continue
		}
		r.Jobs = append(r.Jobs, e.job.name)
		if u := e.job.user; u != "" && !users[u] {
			users[u] = true
			r.Users = append(r.Users, u)
		}
	}
	if len(r.Jobs) > 0 {
		r.YAML = d.write()
	}
	return r
}

// holdable refuses a text that no file can hold.
func holdable(text string) error {
	switch {
	case !utf8.ValidString(text):
		return daybook.Invalid("it holds bytes that are not UTF-8").WithHint("write the name in UTF-8, or put the command into a script")
	case strings.ContainsRune(text, 0):
		return daybook.Invalid("it holds a NUL byte").WithHint("the file may be damaged or not be text")
	case strings.ContainsFunc(text, control):
		return daybook.Invalid("it holds the character %U", rune(text[strings.IndexFunc(text, control)])).WithHint("put the command into a script")
	}
	return nil
}

// control matches the characters that no text of the file holds.
func control(c rune) bool { return c < ' ' && c != '\n' && c != '\t' && c != '\r' }

// userName matches the names that users have.
var userName = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.@$+-]*$`)

// checkUser refuses what can be no user.
func checkUser(name string) error {
	if userName.MatchString(name) {
		return nil
	}
	return daybook.Invalid("%q can be no user", clip(name)).WithHint("is it the table of a user? then leave --system out")
}

// place returns a directory if the file can hold it, else "".
func place(dir string) string {
	if !path.IsAbs(dir) || strings.ContainsFunc(dir, hidden) || holdable(dir) != nil {
		return ""
	}
	return dir
}

// settable says why a variable cannot stand in env, or returns "".
func settable(name, value string) string {
	switch {
	case !envName.MatchString(name):
		return "it is no name of a variable"
	case strings.HasPrefix(name, "DAYBOOK_"):
		return "names with DAYBOOK_ are given by Daybook"
	case strings.Contains(value, "${"), strings.HasPrefix(value, "file:/"):
		return "Daybook would look its value up, and there it is meant as it stands: set it in the command"
	case strings.ContainsFunc(value, control), !utf8.ValidString(value):
		return "its value is no text"
	}
	return ""
}
