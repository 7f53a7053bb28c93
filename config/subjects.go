package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/userdb"
)

// listingDraft is a listing while it is read.
type listingDraft struct {
	what daybook.Text
	daybook.Listing
}

var listingNames = []name[listingDraft]{
	ofListing("dsn", "none", "the database that is asked, only to be read: sqlite:PATH, counted from the folder of this file, or a secret that holds postgres://… or mysql://…",
		value[string]{shape{words: "sqlite:PATH or secret", rule: object{{"type", "string"}, {"pattern", "^sqlite:|" + referencePattern}}}, (*reader).userDSN},
		func(l *daybook.Listing, v string) { l.DSN = v }),
	ofListing("sql", "none", "a SELECT with the column subject, an optional column zone, and the payload in the others; :date :window :window_start :window_end stand for the window",
		value[string]{textShape, (*reader).query}, func(l *daybook.Listing, v string) { l.SQL = v }),
	ofListing("url", "none", "address that answers with JSON lines, or a JSON array, of objects with subject, an optional zone, and the payload; {date} {window} {window_start} {window_end} stand for the window",
		callURL, func(l *daybook.Listing, v string) { l.URL = v }),
}

func ofListing(word, unless, meaning string, v value[string], set func(*daybook.Listing, string)) name[listingDraft] {
	return name[listingDraft]{about{word, v.is, unless, meaning}, func(r *reader, d *listingDraft, _, n *node) {
		if got, ok := v.read(r, n, in(d.what, word)); ok {
			set(&d.Listing, got)
		}
	}}
}

// userDSN reads where a database of the user is. A password does not stand in the file.
func (r *reader) userDSN(n *node, what daybook.Text) (string, bool) {
	s, ok := r.word(n, what)
	if !ok || isReference(s) {
		return s, ok
	}
	if kind, err := userdb.KindOf(s); err != nil {
		r.failed(n.pos, what, err)
		return "", false
	} else if kind != userdb.SQLite {
		r.fault(n.pos, daybook.Invalid("%s: a secret cannot stand in the file", what).WithHint(`write "${NAME}" or "file:/path" and keep the value there`))
		return "", false
	}
	return s, true
}

// query reads a query over a database of the user.
func (r *reader) query(n *node, what daybook.Text) (string, bool) {
	s, ok := r.textual(n, what, false)
	if !ok {
		return "", false
	}
	if err := userdb.Check(s); err != nil {
		r.failed(n.pos, what, err)
		return "", false
	}
	return s, true
}

// readListings reads the listings that have a name of their own.
func (r *reader) readListings(n *node) {
	if n.kind != isMap {
		_ = r.wrong(n, here("subjects"), aMap).WithHint("write the name of a listing and below it, indented, dsn and sql, or url")
		return
	}
	r.listings = map[string]daybook.Listing{}
	for _, p := range n.pairs {
		word := p.key.text
		if _, twice := r.listings[word]; twice {
			r.fault(p.key.pos, daybook.Invalid("%s stands twice", in(here("subjects"), quoted(word))).WithHint("keep one"))
			continue
		}
		r.listings[word] = daybook.Listing{}
		if daybook.CheckName(word) != nil {
			r.fault(p.key.pos, daybook.Invalid("subjects: %s cannot name a listing", quoted(word)).WithHint("1 to 64 lower-case letters, digits, '_' and '-'"))
			continue
		}
		if l, ok := r.readListing(p.value, in(here("subjects"), word)); ok {
			l.Name = word
			r.listings[word] = l
		}
	}
}

func (r *reader) readListing(n *node, what daybook.Text) (daybook.Listing, bool) {
	if n.kind != isMap {
		_ = r.wrong(n, what, aMap).WithHint("write {dsn: …, sql: SELECT …} or {url: …}")
		return daybook.Listing{}, false
	}
	before := r.count()
	d := &listingDraft{what: what}
	readMap(r, n, what, listingNames, nil, d)
	if r.count() > before {
		return daybook.Listing{}, false
	}
	switch l := d.Listing; {
	case l.URL != "" && (l.SQL != "" || l.DSN != ""):
		r.fault(n.pos, daybook.Invalid("%s has both a url and a query", what).WithHint("keep one"))
	case l.URL == "" && l.SQL == "":
		r.fault(n.pos, daybook.Invalid("%s lists nothing", what).WithHint("write {dsn: …, sql: SELECT …} or {url: …}"))
	case l.SQL != "" && l.DSN == "":
		r.fault(n.pos, daybook.Invalid("%s has no dsn", what).WithHint(`add dsn: "file:/path" or dsn: "${NAME}", which hold the URL of the database`))
	}
	return d.Listing, r.count() == before
}

// readSubjects reads the subjects of a job: the name of a listing, or one of its own.
func readSubjects(r *reader, d *draft, _, v *node) {
	what := in(d.what, "subjects")
	d.note("subjects", v.pos, false)
	if v.kind != isText {
		l, ok := r.readListing(v, what)
		if d.job.Subjects = l; ok {
			d.note("subjects", v.pos, true)
		}
		return
	}
	l, known := r.listings[v.text]
	if !known {
		err := daybook.Invalid("%s: there is no listing %s", what, quoted(v.text))
		names := slices.Sorted(maps.Keys(r.listings))
		switch near := daybook.Nearest(v.text, names); {
		case near != "":
			_ = err.WithHint("did you mean %s?", near)
		case len(names) > 0:
			_ = err.WithHint("one of: %s", joined(names))
		default:
			_ = err.WithHint("add it under subjects, at the top of the file")
		}
		r.fault(v.pos, err)
		return
	}
	if d.job.Subjects = l; l != (daybook.Listing{}) { // else it has a fault, which is told there
		d.note("subjects", v.pos, true)
	}
}

// Subjects returns the listing of a job with what it refers to looked up. Errors are those of Secret.Resolve.
func (f *File) Subjects(j *Job, v Vault) (l daybook.Listing, err error) {
	l = j.Subjects
	if l.DSN, err = (Secret{l.DSN}).Resolve(v); err != nil {
		return l, daybook.New(daybook.CodeOf(err), "dsn of the subjects").Because(err)
	}
	if l.URL, err = (Secret{l.URL}).Resolve(v); err != nil {
		return l, daybook.New(daybook.CodeOf(err), "url of the subjects").Because(err)
	}
	if path, ok := strings.CutPrefix(l.DSN, "sqlite:"); ok {
		l.DSN = "sqlite:" + f.Locate(path)
	}
	return l, nil
}
