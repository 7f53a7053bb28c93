package control

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// Request asks for one key of a job.
type Request struct {
	Job string
	// Window is the label of the key, and may end with ~n for a deliberate further effect. Empty: the window of the
	// latest fire already past, never the wall date.
	Window string
	// Date names the window of a job whose windows are days. At most one of Window and Date is given.
	Date    string
	Subject string          // as people write it; encoded here
	Payload json.RawMessage // nil: none

	Again      bool // a further attempt of a done run of repeatable work
	Early      bool // the window is not open yet; needs Note
	RunSkipped bool // a window that was skipped runs after all
	Unlisted   bool // a subject that the listing of its window did not name
	Note       string

	// Source is the door when it is not the person's own: event, drill or once. With event, Window is the id of the event
	// as it came.
	Source daybook.Source
	// Define is the definition of a job that no file defines, for `daybook once`: it is made known, and only once runs it.
	Define *daybook.Job
	// Take claims the key for this process, in the transaction that records the trigger, if it may be tried now: nobody else
	// does what the trigger made. Its Key is filled in. Nil: whoever claims it first does it.
	Take *daybook.Claim
}

// target is a request resolved: which key is asked for, and what is made when it is new.
type target struct {
	known
	ask      daybook.Ask
	window   daybook.Window
	opens    time.Time    // the first fire of the window, or its start
	template *daybook.Run // nil when only a key that exists can be answered
}

// Trigger asks for a key: makes its run, or answers from what is known about it, by the table of daybook.Decide. The
// trigger is recorded with the person's name whatever the answer. The possible results are those of the table, in
// Answer.Outcome: started, joined, reused, refused; each has its exit code and HTTP status.
//
// Errors, after which nothing was recorded: CodeNotFound, no such job (with the nearest name); CodeInvalid, a label of
// another form, a date for a window that is no day, no window for a job without a schedule, no reason with Early or ~n,
// a payload that is not JSON or too long; CodeConflict, an ~n that is not the next free one, or a new key of a job that
// no file defines any more; CodeUnavailable.
func (c *Control) Trigger(ctx context.Context, p Person, q Request) (Answer, error) {
	now := c.now()
	t, err := c.target(ctx, p, q, true, now)
	if err != nil {
		return Answer{}, err
	}
	if q.Take != nil {
		if err := t.mayTake(); err != nil {
			return Answer{}, err
		}
		take := *q.Take
		take.Key, t.ask.Take = t.ask.Key, &take
	}
	reply, run, err := c.s.Trigger(ctx, t.ask, t.template, now)
	if err != nil {
		return Answer{}, err
	}
	t.answeredBy(run)
	if reply.Outcome == daybook.Started || reply.Outcome == daybook.Joined {
		c.o.Wake()
	}
	return c.answer(ctx, t, reply, run, now)
}

// mayTake refuses the claim of a run that only names its subjects: whoever has the listing does that, and each subject is claimed by itself.
func (t *target) mayTake() error {
	if !t.job.Fans() || t.ask.Key.Parts().Subject != "" {
		return nil
	}
	return daybook.Conflict("job %s is done for each of its subjects, which a serve lists: no line or program of its own does %s as a whole", t.job.Name, t.ask.Key).
		WithHint("daybook job trigger %s --window %s", t.job.Name, t.ask.Key.Parts().Window)
}

// Preview tells what Trigger would answer now, and for which key. Nothing is written. Errors are those of Trigger.
func (c *Control) Preview(ctx context.Context, p Person, q Request) (Answer, error) {
	now := c.now()
	t, err := c.target(ctx, p, q, false, now)
	if err != nil {
		return Answer{}, err
	}
	run, standing, err := c.standing(ctx, t)
	if err != nil {
		return Answer{}, err
	}
	t.answeredBy(run)
	reply := daybook.Decide(t.ask, standing)
	a, err := c.answer(ctx, t, reply, run, now)
	if err == nil && a.Cover != nil && reply.Because == daybook.BecauseCovered {
		about := t.ask
		about.Payload = nil
		stands, err := c.standingWith(ctx, a.Cover, "")
		if err != nil {
			return a, err
		}
		if as := daybook.Decide(about, stands); as.Act == daybook.ActNone {
			a.Reply = as
		}
	}
	return a, err
}

// answeredBy makes the answer be about the row that answers, which may stand under an earlier name of the job.
func (t *target) answeredBy(r *daybook.Run) {
	if r != nil {
		t.ask.Key = r.Key
	}
}

// target resolves a request.
func (c *Control) target(ctx context.Context, p Person, q Request, write bool, now time.Time) (target, error) {
	p, err := p.check()
	if err != nil {
		return target{}, err
	}
	source, err := door(p, q.Source)
	if err != nil {
		return target{}, err
	}
	note, err := reason(q.Note, daybook.Say("asking for a window that is not open"), q.Early)
	if err != nil {
		return target{}, err
	}
	if _, err := daybook.HashPayload(q.Payload); err != nil {
		return target{}, err
	}
	if q.Window != "" && q.Date != "" {
		return target{}, daybook.Invalid("both a window and a date are given").WithHint("give one: --date is the alias of --window for days")
	}
	k, err := c.jobOf(ctx, q, write, now)
	if err != nil {
		return target{}, err
	}
	if k.job == nil {
		return target{}, k.fault
	}
	t := target{known: k, ask: daybook.Ask{Source: source, Actor: p.Name, Note: note, Again: q.Again, Early: q.Early,
		RunSkipped: q.RunSkipped, Payload: q.Payload, EventJob: k.job.Work == daybook.Event, Effects: k.job.Effects}}
	if source != daybook.SourceOnce && t.state.Home == "" { // a line of the crontab does not wait for freezes of a file
		t.ask.Freezes = c.o.Freezes().At(now)
	}
	parts, err := t.parts(q, now)
	if err != nil {
		return target{}, err
	}
	t.ask.Key = parts.Key()
	if parts.N > 1 {
		if err := c.further(ctx, parts, note); err != nil {
			return target{}, err
		}
	}
	if err := c.open(ctx, &t, parts, q.Subject, now); err != nil {
		return target{}, err
	}
	return t, c.named(ctx, &t, parts, q.Unlisted)
}

// door returns by which door a request comes.
func door(p Person, asked daybook.Source) (daybook.Source, error) {
	switch asked {
	case "":
		return p.Source, nil
	case daybook.SourceManual, daybook.SourceAPI, daybook.SourceEvent, daybook.SourceDrill, daybook.SourceOnce:
		return asked, nil
	case daybook.SourceReplay:
		return "", daybook.Invalid("a replay is asked for as a replay").WithHint("daybook dead replay KEY")
	}
	return "", daybook.Invalid("%q is not a door that people come by", daybook.Clip(string(asked), 40))
}

func (c *Control) jobOf(ctx context.Context, q Request, write bool, now time.Time) (known, error) {
	if q.Define == nil {
		return c.lookUp(ctx, q.Job, write, now)
	}
	if q.Define.Name != q.Job {
		return known{}, daybook.Invalid("the definition of job %q is not that of %q", daybook.Clip(q.Define.Name, 64), daybook.Clip(q.Job, 64))
	}
	st, ok, err := c.s.JobState(ctx, q.Job)
	if err != nil {
		return known{}, err
	}
	if ok && st.Home != daybook.HomeOnce && st.RetiredAt.IsZero() {
		return known{}, daybook.Conflict("job %s is defined by a file: its schedule, window and policies are the file's", q.Job).
			WithHint("leave out everything but --job, the window and the command")
	}
	return c.makeKnown(ctx, *q.Define, daybook.HomeOnce, st, write, now)
}

// parts works out which key is asked for.
func (t *target) parts(q Request, now time.Time) (daybook.KeyParts, error) {
	parts := daybook.KeyParts{Job: q.Job, N: 1}
	suffix := ""
	switch {
	case q.Window != "" && t.ask.Source == daybook.SourceEvent:
		id, err := daybook.EncodeSubject(q.Window)
		if err != nil {
			return parts, err
		}
		parts.Window = id
	case q.Window != "":
		label, n, further := strings.Cut(q.Window, "~")
		parts.Window = label
		if further {
			suffix = "~" + n
		}
	case q.Date != "":
		if t.schedule == nil {
			return parts, t.fault
		}
		if err := checkDate(t.known, q.Date); err != nil {
			return parts, err
		}
		parts.Window = q.Date
	default:
		if t.schedule == nil {
			return parts, t.fault
		}
		fire, ok := latest(t.schedule, now)
		if !ok {
			return parts, noWindow(t.known)
		}
		parts.Window = fire.Window.Label
	}
	if q.Subject != "" {
		subject, err := daybook.EncodeSubject(q.Subject)
		if err != nil {
			return parts, err
		}
		if t.kind() != daybook.PerEvent { // an event's subject orders it, and is not in the key
			parts.Subject = subject
		}
	}
	// ParseKey checks the whole, its length and ~n included.
	text := string(daybook.KeyParts{Job: parts.Job, Window: parts.Window}.Key()) + suffix
	if parts.Subject != "" {
		text += "/" + parts.Subject
	}
	got, err := daybook.ParseKey(text)
	if err != nil {
		return parts, err
	}
	if got.Undo {
		return parts, notAsked(got.Key())
	}
	if got.Window != parts.Window || got.Subject != parts.Subject {
		return parts, daybook.Invalid("window %q: a label has no '/'", daybook.Clip(q.Window, 60)).WithHint("a subject is given by itself: --subject")
	}
	return got, nil
}

// notAsked refuses the key of an undo where a key is asked for: what it takes back must not be done instead.
func notAsked(k daybook.Key) *daybook.Error {
	return daybook.Invalid("%s is the key of an undo, and is not asked for", k).WithHint("daybook run undo %s", k.Base())
}

// checkDate refuses a date where it does not name a window.
func checkDate(k known, date string) error {
	switch kind := k.kind(); kind {
	case daybook.Day, daybook.PreviousDay:
		return nil
	case daybook.PerEvent:
		return noDate(k.job.Name, kind, daybook.Say("an event is named by its id: --window ID"))
	default:
		_, err := k.schedule.WindowOf("?")
		hint := daybook.HintText(err)
		if w, err := k.schedule.OfDate(date); err == nil {
			hint = daybook.Say("a fire on %s answers for --window %s; %s", date, w.Label, hint)
		}
		return noDate(k.job.Name, kind, hint)
	}
}

// latest returns the latest fire already past that really fires.
func latest(s *calendar.Schedule, now time.Time) (daybook.Fire, bool) {
	f, ok := s.Prev(now)
	if !ok || f.Skip == "" {
		return f, ok
	}
	// Days off, or a clock change, took it out: the last one before that they did not.
	const longest = 400 * 24 * time.Hour
	for span := 2 * 24 * time.Hour; ; span = min(4*span, longest) {
		found := false
		for g := range s.Between(now.Add(-span), now) {
			if g.Skip == "" {
				f, found = g, true
			}
		}
		if found || span == longest {
			return f, found
		}
	}
}

// lastFire returns the last fire of a window that really fires, else its last one: the instant by which spans of skipped
// windows are looked up.
func lastFire(s *calendar.Schedule, w daybook.Window) (first, last daybook.Fire, ok bool) {
	first, last, ok = s.FiresOf(w)
	if !ok || last.Skip == "" {
		return first, last, ok
	}
	for f := range s.Between(first.At.Add(-time.Second), last.At) {
		if f.Window.Label == w.Label && f.Skip == "" {
			last = f
		}
	}
	return first, last, true
}

// further checks a deliberate further effect: with a reason, and by the next free number. One that exists is asked for
// like any other key.
func (c *Control) further(ctx context.Context, parts daybook.KeyParts, note string) error {
	if note == "" {
		_, err := reason("", daybook.Say("a further effect for one window"), true)
		return err
	}
	highest, err := c.s.HighestN(ctx, parts.Job, parts.Window, parts.Subject)
	if err != nil {
		return err
	}
	first := parts
	first.N = 1
	switch {
	case highest == 0:
		return daybook.Conflict("%s cannot be a further effect: there is no %s yet", parts.Key(), first.Key()).
			WithHint("trigger %s first", first.Key())
	case parts.N > highest+1:
		next := parts
		next.N = highest + 1
		return daybook.Conflict("%s leaves a number out: the next free one is %s", parts.Key(), next.Key()).
			WithHint("use --window %s~%d", next.Window, next.N)
	}
	return nil
}

// open works out the window, whether it is open, and the run to be made. A label that the schedule of today does not
// know is answered from the ledger if it is there: a key keeps its meaning when the schedule changes.
func (c *Control) open(ctx context.Context, t *target, parts daybook.KeyParts, subject string, now time.Time) error {
	w, err := t.windowOf(parts.Window)
	if err != nil || t.retired() {
		r, rerr := c.underAnyName(ctx, t.ask.Key, t.state.Formerly)
		switch {
		case rerr != nil:
			return rerr
		case r != nil:
			t.window = r.Window
			return nil
		case t.state.RenamedTo != "":
			return carriedOn(t.state.Name, t.state.RenamedTo, parts.Window)
		case err != nil:
			return err
		}
		return daybook.Conflict("job %s is defined by no file any more: nothing new is started", t.job.Name).
			WithHint("add it to daybook.yaml again, or look at what it did: daybook key find %s:", t.job.Name)
	}
	t.opens = w.Start
	if first, last, ok := lastFire(t.schedule, w); ok {
		t.opens = first.At
		if parts.N == 1 && parts.Subject == "" { // others have keys of their own: a skipped window says nothing about them
			t.ask.FireAt = last.At
		}
	}
	if t.kind() == daybook.PerEvent {
		w.Start, w.End, t.opens = now, now, now
		w.Date = now.In(location(t.job.Timezone)).Format(time.DateOnly)
	}
	t.window = w
	t.ask.NotOpen = t.opens.After(now)
	r := daybook.NewRun(t.job, t.state.Revision, w, parts.N, parts.Subject, now)
	if t.kind() == daybook.PerEvent && subject != "" {
		if r.Subject, err = daybook.EncodeSubject(subject); err != nil {
			return err
		}
		r.Serial = r.SerialKey(t.job.Serial)
	}
	version, source := calendar.TZData()
	r.TZData = version + " " + source
	r.Home = t.state.Home
	r.Due, r.NotBefore, r.Cover = now, now, daybook.Bounds{Start: w.Start, End: w.End}
	if t.ask.NotOpen && t.ask.Early {
		r.Reason = daybook.ReasonEarly
	}
	t.template = r
	return nil
}

func (t *target) windowOf(label string) (daybook.Window, error) {
	if t.schedule == nil {
		return daybook.Window{}, t.fault
	}
	return t.schedule.WindowOf(label)
}

// standing reads what the store would read about a key, without its transaction.
func (c *Control) standing(ctx context.Context, t target) (*daybook.Run, daybook.Standing, error) {
	hash, err := daybook.HashPayload(t.ask.Payload)
	if err != nil {
		return nil, daybook.Standing{}, err
	}
	run, err := c.underAnyName(ctx, t.ask.Key, t.state.Formerly)
	if err != nil {
		return nil, daybook.Standing{}, err
	}
	if run != nil {
		s, err := c.standingWith(ctx, run, hash)
		return run, s, err
	}
	s := daybook.Standing{NotOpen: t.ask.NotOpen, EventJob: t.ask.EventJob, Paused: t.state.Paused}
	if t.ask.Effects == daybook.Once {
		holds, err := c.s.Holds(ctx)
		if err != nil {
			return nil, s, err
		}
		for _, h := range holds {
			switch h.Name {
			case daybook.HoldClock:
				s.Held = daybook.ReasonClock
			case daybook.HoldRestored: // the later of the two by name
				s.Held = daybook.ReasonRestored
			}
		}
	}
	freezes, err := c.s.Freezes(ctx, c.now())
	if err != nil {
		return nil, s, err
	}
	if s.Held == "" && !daybook.FrozenUntil(append(freezes, t.ask.Freezes...), t.job.Priority, c.now()).IsZero() {
		s.Held = daybook.ReasonFrozen
	}
	span, err := c.spanAt(ctx, t.names(), t.ask.FireAt)
	if err == nil && span != nil {
		s.Exists, s.State, s.SpanReason = true, daybook.Skipped, span.Reason
	}
	return nil, s, err
}

// standingWith is standingOf with what is known of the subjects of a run.
func (c *Control) standingWith(ctx context.Context, r *daybook.Run, hash string) (daybook.Standing, error) {
	s := standingOf(r, hash)
	if !r.FannedOut() {
		return s, nil
	}
	n, err := c.s.Subjects(ctx, r.Key)
	return s.With(daybook.Fanout{UnderWay: n.UnderWay() > 0, Failed: n.Letters > 0, Unknown: n.Unknown > 0}), err
}

func standingOf(r *daybook.Run, hash string) daybook.Standing {
	s := daybook.Standing{Exists: true, State: r.State, Effects: r.Effects, Undone: r.Reason == daybook.ReasonUndone, Undoing: r.Reason == daybook.ReasonUndoing,
		OtherPayload: hash != "" && hash != r.PayloadHash}
	if r.Letter != nil {
		s.LetterKind, s.LetterState = r.Letter.Kind, r.Letter.State
	}
	return s
}

// names are those under which the rows of the job may stand.
func (t *target) names() []string { return append([]string{t.ask.Key.Job()}, t.state.Formerly...) }

// spanAt returns the span of skipped windows that holds a fire, nil when there is none.
func (c *Control) spanAt(ctx context.Context, names []string, fire time.Time) (*daybook.Span, error) {
	if fire.IsZero() {
		return nil, nil
	}
	for _, job := range names {
		spans, err := c.s.Spans(ctx, job, fire)
		if err != nil {
			return nil, err
		}
		for _, sp := range spans {
			if !fire.Before(sp.From) && !fire.After(sp.To) {
				return &sp, nil
			}
		}
	}
	return nil, nil
}
