package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
)

// compared is what a file would change against the ledger that it names.
type compared struct {
	ledger  string // without secrets; empty: there is none yet, or it could not be read
	changes []control.Change
	note    error // why it could not be read
}

// lookTimeout bounds how long check waits for a ledger: it is asked by the way.
const lookTimeout = 5 * time.Second

// compare looks into the ledger of a file, if it is there. It writes nothing, and makes none.
func (a *app) compare(ctx context.Context, f *config.File) compared {
	text, err := a.databaseURL(f)
	if err != nil {
		return compared{note: err}
	}
	if path, lite := strings.CutPrefix(text, "sqlite:"); lite {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return compared{}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	changes, err := a.changesOf(ctx, text, f)
	if err != nil {
		return compared{note: err}
	}
	return compared{ledger: config.Mask(text), changes: changes}
}

func (a *app) changesOf(ctx context.Context, text string, f *config.File) (list []control.Change, err error) {
	db, err := openToRead(text)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Read.Close(), closeOther(db)) }()
	e, err := engine.Open(ctx, db, engine.Options{Role: "cli", ReadOnly: true, Days: a.daysOf(f), Log: a.logger(), Now: a.Now})
	if err != nil {
		return nil, whatToDo(err)
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return e.Control().Changes(ctx, jobsOf(f, a.vault()))
}

// openToRead opens handles that cannot write.
func openToRead(text string) (engine.DB, error) {
	path, lite := strings.CutPrefix(text, "sqlite:")
	if !lite {
		db, err := openPostgres(text, "default_transaction_read_only", "on")
		return engine.DB{Write: db, Read: db}, err
	}
	source := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: "mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(5000)"}).String()
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return engine.DB{}, daybook.New(daybook.CodeUnavailable, "open %s", path).Because(err)
	}
	return engine.DB{Write: db, Read: db}, nil
}

// jobsOf are the definitions of a file as the ledger keeps them.
func jobsOf(f *config.File, v config.Vault) []daybook.Job {
	var list []daybook.Job
	for _, d := range definitions(f, v) {
		list = append(list, d.Job)
	}
	return list
}

// mayTake refuses a file that changes what keys of P0 jobs promise before somebody accepted it, and returns what it changes.
func (a *app) mayTake(ctx context.Context, l *ledger, f *config.File) ([]control.Change, error) {
	changes, err := l.Control().Changes(ctx, jobsOf(f, a.vault()))
	if err != nil {
		return nil, err
	}
	a.warnOf(f, changes)
	return changes, control.RefusedKeys(changes)
}

// mayMakeKnown refuses to bring a job into the ledger by a file that serve does not take: one that was renamed without saying
// so would do the same business under other keys.
func (a *app) mayMakeKnown(ctx context.Context, l *ledger, job string) error {
	if l.file == nil {
		return nil
	}
	changes, err := l.Control().Changes(ctx, jobsOf(l.file, a.vault()))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(changes, func(c control.Change) bool { return c.Job == job && c.Kind == control.ChangeNew }) {
		return nil
	}
	return control.RefusedKeys(changes)
}

// warnOf logs what changes of a file do to the keys of its jobs, and nobody accepted yet.
func (a *app) warnOf(f *config.File, changes []control.Change) {
	for _, w := range riskWarnings(f, slices.DeleteFunc(slices.Clone(changes), func(c control.Change) bool { return c.Accepted != nil })) {
		a.logger().Warn(w.Message, "place", w.Place(), "hint", w.Hint)
	}
}

// acceptKeys records that a person accepts what a file does to the keys of P0 jobs.
func (a *app) acceptKeys(ctx context.Context, path, reason string) error {
	f, err := config.Load(path)
	if err != nil {
		return err
	}
	text, err := a.databaseURL(f)
	if err != nil {
		return err
	}
	l, err := a.openAt(ctx, "cli", text, f, false)
	if err != nil {
		return err
	}
	accepted, err := l.Control().AcceptKeys(ctx, a.person(), jobsOf(f, a.vault()), reason)
	if err = errors.Join(err, l.Close()); err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(acceptedJSON{Schema: "daybook/accepted.v1", File: path, Changes: changesJSON(accepted)})
	}
	w := bufio.NewWriter(a.Stdout)
	a.printChanges(w, accepted)
	if err := w.Flush(); err != nil {
		return err
	}
	if len(accepted) == 0 {
		a.say("%s: nothing to accept: it changes no key of a P0 job, and leaves none of their windows out", path)
		return nil
	}
	a.say("%s: %s", path, daybook.Count(len(accepted), "%d change is accepted; it counts when serve takes the file", "%d changes are accepted; they count when serve takes the file"))
	a.next("daybook serve")
	return nil
}

// acceptedJSON is daybook/accepted.v1.
type acceptedJSON struct {
	Schema  string       `json:"schema"`
	File    string       `json:"file"`
	Changes []changeJSON `json:"changes"`
}

// changeJSON is what a file would change about a job.
type changeJSON struct {
	Job          string              `json:"job"`
	Change       control.ChangeKind  `json:"change"`
	Formerly     string              `json:"formerly,omitempty"`
	Names        []config.Difference `json:"names,omitempty"`
	Fires        []fireChangeJSON    `json:"fires,omitempty"`
	Consequences []consequenceJSON   `json:"consequences,omitempty"`
	Refused      bool                `json:"refused,omitempty"` // by serve, until it is accepted
	Accepted     *acceptanceJSON     `json:"accepted,omitempty"`
}

// fireChangeJSON pairs the fires to come by the definition that counts now and by the one of the file.
type fireChangeJSON struct {
	OldAt  time.Time   `json:"old_at,omitzero"`
	OldKey daybook.Key `json:"old_key,omitempty"`
	NewAt  time.Time   `json:"new_at,omitzero"`
	NewKey daybook.Key `json:"new_key,omitempty"`
}

type consequenceJSON struct {
	Risk    calendar.Risk `json:"risk"`
	Message string        `json:"message"`
	Windows []string      `json:"windows,omitempty"`
	Count   int           `json:"count,omitempty"`
}

type acceptanceJSON struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
}

func changesJSON(changes []control.Change) []changeJSON {
	list := []changeJSON{}
	for _, c := range changes {
		j := changeJSON{Job: c.Job, Change: c.Kind, Formerly: c.Formerly, Refused: c.Refused()}
		if c.Kind == control.ChangeNone {
			continue
		}
		if c.Old != nil && c.New != nil {
			j.Names = config.Differences(c.Old, c.New)
		}
		for i := range max(len(c.OldFires), len(c.NewFires)) {
			var f fireChangeJSON
			if i < len(c.OldFires) {
				f.OldAt, f.OldKey = c.OldFires[i].Fire.At, c.OldFires[i].Key
			}
			if i < len(c.NewFires) {
				f.NewAt, f.NewKey = c.NewFires[i].Fire.At, c.NewFires[i].Key
			}
			j.Fires = append(j.Fires, f)
		}
		for _, r := range c.Consequences {
			j.Consequences = append(j.Consequences, consequenceJSON{r.Risk, r.Why.String(), r.Windows, r.Count})
		}
		if c.Accepted != nil {
			j.Accepted = &acceptanceJSON{c.Accepted.At, c.Accepted.Actor, c.Accepted.Note}
		}
		list = append(list, j)
	}
	return list
}

// printChanges writes what a file would change, a block a job.
func (a *app) printChanges(w *bufio.Writer, changes []control.Change) {
	for _, c := range changes {
		if c.Kind == control.ChangeNone {
			continue
		}
		fmt.Fprintln(w, a.lang.Say(changeText(c)))
		if c.Old != nil && c.New != nil {
			for _, d := range config.Differences(c.Old, c.New) {
				fmt.Fprintf(w, "  %s\n", a.lang.Say(d.Text()))
			}
		}
		if c.Kind == control.ChangeNew || sameFires(c) {
			continue
		}
		for i := range max(len(c.OldFires), len(c.NewFires)) {
			fmt.Fprintf(w, "  %s  →  %s\n", a.fireOf(c.OldFires, i, c.Old), a.fireOf(c.NewFires, i, c.New))
		}
	}
}

// changeText names a change.
func changeText(c control.Change) daybook.Text {
	switch c.Kind {
	case control.ChangeNew:
		return daybook.Say("%s  new", c.Job)
	case control.ChangeGone:
		return daybook.Say("%s  gone", c.Job)
	case control.ChangeRenamed:
		return daybook.Say("%s  renamed from %s, whose keys it carries on", c.Job, c.Formerly)
	}
	return daybook.Say("%s  changed", c.Job)
}

func sameFires(c control.Change) bool {
	if len(c.OldFires) != len(c.NewFires) {
		return false
	}
	for i, f := range c.OldFires {
		if !f.Fire.At.Equal(c.NewFires[i].Fire.At) || f.Key != c.NewFires[i].Key {
			return false
		}
	}
	return true
}

// fireOf writes the i-th fire and the key it leads to.
func (a *app) fireOf(fires []control.NextFire, i int, j *daybook.Job) string {
	if i >= len(fires) {
		return "–"
	}
	loc := time.UTC
	if l, err := calendar.Zone(j.Timezone); err == nil {
		loc = a.displayZone(l)
	}
	return a.fireAt(fires[i].Fire.At.In(loc)) + "  " + string(fires[i].Key)
}

// riskWarnings says what changes of a file a person should see before they count, where the job stands in the file.
func riskWarnings(f *config.File, changes []control.Change) []config.Fault {
	var list []config.Fault
	for _, c := range changes {
		line, column := 0, 0
		if j, err := f.Find(c.Job); err == nil {
			line, column = j.Line, j.Column
		}
		if c.Unknown {
			list = append(list, config.NewFault(f.Path, line, column, daybook.Invalid("job %s: formerly: the ledger knows no job %s, so nothing is carried over", c.Job, c.New.Formerly).
				WithHint("is the name written as it was? daybook job list shows those of the ledger")))
		}
		for _, r := range c.Consequences {
			err := daybook.Invalid("job %s: %s", c.Job, r.Why)
			switch {
			case c.Accepted != nil:
				_ = err.WithHint("accepted by %s: %s", c.Accepted.Actor, c.Accepted.Note)
			case c.Refused() && c.Kind == control.ChangeGone:
				_ = err.WithHint("serve refuses it: if the job was renamed, write formerly: %s in the new one; else daybook check --accept-keys --reason …", c.Job)
			case c.Refused():
				_ = err.WithHint("serve refuses it, for a P0 job, until: daybook check --accept-keys --reason …")
			case c.Kind == control.ChangeGone:
				_ = err.WithHint("if the job was renamed, write formerly: %s in the new one", c.Job)
			default:
				_ = err.WithHint("nothing to do if it is meant so; serve takes it")
			}
			list = append(list, config.NewFault(f.Path, line, column, err))
		}
	}
	return list
}
