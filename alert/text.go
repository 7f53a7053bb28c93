package alert

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/internal/lang"
	"github.com/daybook-run/daybook/internal/notice"
)

// Limits of a text, in characters.
const (
	subjectChars = 90  // the first 60 are enough on a lock screen
	whatChars    = 48  // of a key within a subject
	shortChars   = 140 // of the short form
	lineChars    = 200 // of an error in the first line
	errorChars   = 800 // of an error in a line of its own
)

// listedSubjects is how many subjects an alert lists; the others are counted.
const listedSubjects = 20

// closeWithin is how soon a dead letter is to be closed.
const closeWithin = 24 * time.Hour

// Facts is what is known beside the alert when its text is made.
type Facts struct {
	Purpose notice.Purpose
	Round   int          // which telling this is, from 1
	Run     *daybook.Run // nil: the alert is about a job as a whole, or nobody made the run
	Job     *daybook.Job // nil: nothing defines it any more
	URL     string       // base of links; empty: commands instead
	// Of an alert that the subjects of a run share: how they all stand, and the first of those that it is about. Of one alone
	// Run is that one's.
	Counts   *daybook.SubjectCounts
	Subjects []daybook.Key
	Runs     []*daybook.Run // those of Subjects, when there are several, as far as they were found
	Base     *daybook.Run   // of the run of an undo: what it takes back; nil: it was not found
	Secrets  []string       // masked wherever they could show
	Remind   time.Time      // the next reminder; zero: none
	Via      string         // the channel that failed, when this text goes to its fallback
	Now      time.Time
}

// Text is an alert as people read it. No field of the alert can break a line of it or begin a header: Subject and Short
// are one line each.
type Text struct {
	Subject string // at most 90 characters
	Body    string // begins with the subject, uncut
	Short   string // for lock screens and SMS, at most 140 characters
	Details Details
}

// Write makes the text of an alert: what, is money touched, what has been done to the world, the error, what to do, the
// link.
func Write(p lang.Printer, a notice.Row, f Facts) Text {
	if len(f.Subjects) == 1 && f.Run != nil && f.Run.Key == f.Subjects[0] && f.Purpose != notice.Recovered {
		a.Alert.Key = f.Subjects[0]
	}
	w := &writer{Printer: p, a: a, f: f, loc: time.UTC}
	if zone := w.zone(); zone != "" {
		if loc, err := calendar.Zone(zone); err == nil {
			w.loc = loc
		}
	}
	w.what = cmp.Or(w.clean(string(a.Alert.Key)), w.clean(a.Job))
	w.error = w.errorText()
	t := Text{Subject: w.first(whatChars, subjectChars), Short: lang.CutChars(w.short(), shortChars)}
	t.Subject = lang.CutChars(t.Subject, subjectChars)
	w.body.WriteString(w.first(1000, lineChars) + "\n")
	if f.Purpose == notice.Recovered {
		w.over()
	} else {
		w.open()
	}
	t.Body = w.body.String()
	t.Details = w.details(t)
	return t
}

// writer puts one text together.
type writer struct {
	lang.Printer
	a     notice.Row
	f     Facts
	loc   *time.Location
	what  string
	error string
	body  strings.Builder
}

// clean makes a value that others wrote fit for a line.
func (w *writer) clean(s string) string { return oneLine(daybook.Mask(s, w.f.Secrets)) }

func (w *writer) zone() string {
	switch {
	case w.f.Run != nil && w.f.Run.Zone != "":
		return w.f.Run.Zone
	case w.f.Job != nil:
		return w.f.Job.Timezone
	}
	return ""
}

// errorText is the error in one line. What is late or silent is said in the words of the language: the rows have it in
// English only.
func (w *writer) errorText() string {
	r := w.f.Run
	switch {
	case w.a.Kind == daybook.AlertJobLate && r != nil && r.State.Live():
		state := w.State(r.State)
		if hold := r.HeldAt(w.f.Now); hold != "" {
			state = w.Reason(hold, r.CoveredBy)
		}
		return w.T("alert.late", "time", w.brief(r.NotBefore), "state", state)
	case w.a.Kind == JobSilent && w.a.LastGood != "":
		return w.T("alert.silent", "window", w.clean(w.a.LastGood))
	case w.a.Kind == JobSilent:
		return w.T("alert.silence.never")
	}
	return w.Stored(lang.Local(w.clean(w.a.LastError), w.loc))
}

// first is the first line: why it is told, about what, and the error.
func (w *writer) first(what, errors int) string {
	head := w.T("alert.head."+string(w.f.Purpose), "priority", w.a.Priority, "n", w.f.Round-1)
	args := []any{"head", head, "what", lang.CutChars(w.what, what), "kind", w.kind(), "error", lang.CutChars(w.error, errors), "time", w.brief(w.a.ClosedAt)}
	if w.f.Purpose == notice.Recovered {
		return w.T("alert.subject.over", args...)
	}
	return w.T("alert.subject", args...)
}

// kind is the kind in words. A window that was left out is told as late by its rows; it is said as it is.
func (w *writer) kind() string {
	if w.skipped() {
		return w.State(daybook.Skipped)
	}
	return w.Alert(w.a.Kind)
}

func (w *writer) skipped() bool {
	return w.a.Kind == daybook.AlertJobLate && w.f.Run != nil && w.f.Run.State == daybook.Skipped
}

// short is the short form. The error gives way when it is long, not what follows it.
func (w *writer) short() string {
	args := func(chars int) []any {
		return []any{"priority", w.a.Priority, "what", lang.CutChars(w.what, whatChars), "kind", w.kind(),
			"error", strings.TrimRight(lang.CutChars(w.error, chars), ".。"), "money", w.T("alert.shortly." + w.shortly()), "id", w.a.ID()}
	}
	if w.f.Purpose == notice.Recovered {
		return w.T("alert.short.over", args(0)...)
	}
	room := shortChars - lang.Chars(w.T("alert.short", args(0)...))
	return w.T("alert.short", args(max(room, 10))...)
}

// open is the body of what stands open.
func (w *writer) open() {
	w.line("money", w.money())
	if w.a.Kind == JobSilent {
		w.line("silence", cmp.Or(w.clean(w.a.LastGood), w.T("alert.silence.never")))
	} else {
		w.line("error", w.join("sep.item", lang.CutChars(w.error, errorChars), w.attempt(), w.stamp(w.a.At)))
	}
	switch {
	case len(w.f.Subjects) > 1:
		w.line("subjects", w.subjects())
	case len(w.f.Subjects) == 1 && w.f.Counts != nil:
		w.line("subjects", w.subject())
	}
	w.line("do", w.do()...)
	w.line("open", w.link())
	foot := []string{}
	if w.letter() {
		w.line("close", w.T("alert.close by", "time", w.brief(w.a.At.Add(closeWithin))))
	}
	if !w.f.Remind.IsZero() {
		foot = append(foot, w.T("alert.reminder", "time", w.brief(w.f.Remind)))
	}
	if w.f.Job != nil && w.f.Job.Owner != "" {
		foot = append(foot, w.T("alert.owner", "owner", w.clean(w.f.Job.Owner)))
	}
	w.line("alert", w.join("sep.item", append(foot, w.T("alert.id", "id", w.a.ID()))...))
	w.via()
}

// over is the body of what has recovered: how it stands now, what it was, and which alert ends.
func (w *writer) over() {
	w.line("now", w.now())
	w.line("error", w.join("sep.item", lang.CutChars(w.error, errorChars), w.stamp(w.a.At)))
	w.line("open", w.link())
	w.line("alert", w.T("alert.id.over", "id", w.a.ID(), "time", w.stamp(w.a.At)))
	w.via()
}

func (w *writer) via() {
	if w.f.Via != "" {
		w.line("via", w.T("alert.via", "channel", w.clean(w.f.Via)))
	}
}

func (w *writer) letter() bool {
	return w.a.Kind == daybook.AlertDeadLetter || w.a.Kind == daybook.AlertUnknownOutcome || w.a.Kind == daybook.AlertBreakerOpen
}

// subjects lists those whose letters stand open: the first by name, the others by their number.
func (w *writer) subjects() string {
	names := make([]string, len(w.f.Subjects))
	for i, k := range w.f.Subjects {
		names[i] = w.clean(k.Parts().Subject)
	}
	all := strings.Join(names, w.T("sep.list"))
	open := w.f.Counts.Letters
	if w.a.Kind == daybook.AlertUnknownOutcome {
		open = w.f.Counts.Unknown
	}
	if more := open - int64(len(names)); more > 0 {
		all = w.T("alert.subjects more", "subjects", all, "more", more)
	}
	return all
}

// subject says of the only one so far that others may follow, which are not told one by one, and where all stand.
func (w *writer) subject() string {
	p := w.f.Subjects[0].Parts()
	name := "alert.subjects only"
	if w.f.Counts.UnderWay() > 0 {
		name = "alert.subjects first"
	}
	subject := p.Subject
	p.Subject = ""
	return w.T(name, "subject", w.clean(subject), "of", w.f.Counts.Of, "parent", w.clean(string(p.Key())))
}

func (w *writer) attempt() string {
	if w.f.Run == nil || w.f.Run.Attempts == 0 {
		return ""
	}
	return w.T("alert.attempt", "n", w.f.Run.Attempts)
}

// link is the page of the key, or the command that shows the same, and the runbook.
func (w *writer) link() string {
	link := "daybook status"
	switch {
	case w.a.Alert.Key != "":
		link = "daybook key show " + w.what
	case w.f.Job != nil:
		link = "daybook job show " + w.clean(w.a.Job)
	}
	if u := w.url(); u != "" {
		link = u
	}
	if w.f.Job != nil && w.f.Job.Runbook != "" {
		link += "   " + w.T("alert.runbook", "url", w.clean(w.f.Job.Runbook))
	}
	return link
}

func (w *writer) url() string {
	if w.f.URL == "" {
		return ""
	}
	path := "/"
	switch {
	case w.a.Alert.Key != "":
		path = "/k/" + string(w.a.Alert.Key)
	case w.f.Job != nil:
		path = "/jobs/" + w.a.Job
	}
	return w.clean(strings.TrimSuffix(w.f.URL, "/") + (&url.URL{Path: path}).EscapedPath())
}

// now says how things stand after the end.
func (w *writer) now() string {
	r := w.f.Run
	var parts []string
	if r != nil {
		since := r.EndedAt
		if r.State.Live() || since.IsZero() {
			since = w.a.ClosedAt
		}
		parts = append(parts, w.T("alert.now", "state", w.State(r.State), "time", w.brief(since)))
	}
	if r != nil && w.letter() && r.Letter != nil && r.Letter.State != daybook.LetterOpen {
		text := w.T("alert.now letter", "letter", w.Printer.Letter(r.Letter.State), "who", w.clean(r.Letter.ClosedBy))
		if note := w.clean(r.Letter.Note); note != "" {
			text += w.T("sep.colon") + lang.CutChars(note, lineChars)
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return w.T("alert.now over", "time", w.stamp(w.a.ClosedAt))
	}
	return w.join("sep.clause", parts...)
}

// line writes a label and its lines, the further ones below the first. Labels in English are padded to one column.
func (w *writer) line(label string, lines ...string) {
	head := w.T("alert.label." + label)
	if w.Lang() == lang.English {
		head = lang.Pad(head, labelColumns)
	}
	indent := strings.Repeat(" ", lang.Width(head))
	for i, text := range lines {
		if i > 0 {
			head = indent
		}
		w.body.WriteString(head + text + "\n")
	}
}

// labelColumns holds the longest English label and a space.
const labelColumns = 11

func (w *writer) join(separator string, parts ...string) string {
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, w.T(separator))
}

// stamp is an instant with date and zone, brief one without what is clear: the date of today, and the zone, which stands
// elsewhere in the text.
func (w *writer) stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(w.loc).Format(time.DateTime) + " " + w.loc.String()
}

func (w *writer) brief(t time.Time) string {
	t = t.In(w.loc)
	if t.Format(time.DateOnly) == w.f.Now.In(w.loc).Format(time.DateOnly) {
		return t.Format("15:04")
	}
	return t.Format("2006-01-02 15:04")
}

func (w *writer) details(t Text) Details {
	d := Details{ID: w.a.ID(), Kind: w.a.Kind, Purpose: w.f.Purpose, Priority: w.a.Priority, Job: w.clean(w.a.Job), Key: daybook.Key(w.clean(string(w.a.Alert.Key))),
		Subject: t.Subject, Short: t.Short, Error: lang.CutChars(w.clean(w.a.LastError), errorChars), LastGood: w.clean(w.a.LastGood), URL: w.url(), At: w.a.At.UTC()}
	if w.f.Purpose == notice.Recovered {
		over := w.a.ClosedAt.UTC()
		d.Recovered = &over
	}
	if r := w.f.Run; r != nil {
		d.State, d.Attempts = r.State, r.Attempts
	}
	if j := w.f.Job; j != nil {
		d.Owner, d.Runbook = w.clean(j.Owner), w.clean(j.Runbook)
	}
	return d
}

// WriteTest makes the text of a test of a channel.
func WriteTest(p lang.Printer, channel, installation string, now time.Time) Text {
	t := Text{Subject: lang.CutChars(p.T("alert.test.subject", "channel", oneLine(channel)), subjectChars)}
	t.Body = t.Subject + "\n" + p.T("alert.test.body", "name", oneLine(installation)) + "\n"
	t.Short = t.Subject
	t.Details = Details{ID: "test", Kind: kindTest, Purpose: notice.First, Priority: daybook.P1, Job: "daybook", Subject: t.Subject, Short: t.Short, At: now.UTC()}
	return t
}
