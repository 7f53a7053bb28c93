package alert

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/lang"
	"github.com/daybook-run/daybook/internal/notice"
)

// Limits of one piece of work.
const (
	tellsPerTick = 20
	sendsPerTick = 8 // made beside each other
	maxTimeout   = MaxTimeout
	// leaseFor is how long a claimed send is left to its maker. It is longer than any send may take, so that a send is
	// made again only when its maker is gone.
	leaseFor = maxTimeout + 30*time.Second
	// triesMax ends a send whose makers never come back to say how it went: it may be what kills them.
	triesMax = 10
)

// Store is the ledger as the sender sees it. A result false means that another was first and nothing was written.
type Store interface {
	// AlertsDue returns alerts about which something may be to be told at now, numbered, P0 first.
	AlertsDue(ctx context.Context, now time.Time, limit int) ([]notice.Row, error)
	// AlertRow returns one alert. Errors: CodeNotFound.
	AlertRow(ctx context.Context, number int64) (notice.Row, error)
	// TellAlert writes a decision with its sends, while the row is as it was read.
	TellAlert(ctx context.Context, t notice.Telling) (bool, error)
	// ClaimSends takes sends that are due and that nobody is making.
	ClaimSends(ctx context.Context, c notice.Claim, now time.Time) ([]notice.Send, error)
	// MarkSend records how a claimed send ended, with what is sent in its place.
	MarkSend(ctx context.Context, m notice.Send, instead []notice.Send) (bool, error)
	// NextSend returns when the next send can be claimed; zero: there is none.
	NextSend(ctx context.Context) (time.Time, error)
	Reader
}

// Reader reads what the texts are made from. Errors: CodeNotFound, which is no fault here.
type Reader interface {
	Run(ctx context.Context, k daybook.Key) (*daybook.Run, error)
	Definition(ctx context.Context, job string) (*daybook.Job, error)
	// Subjects counts the subjects of a run, SubjectLetters returns the first keys of those whose letters of a kind stand open:
	// unknown, or any other.
	Subjects(ctx context.Context, k daybook.Key) (daybook.SubjectCounts, error)
	SubjectLetters(ctx context.Context, parent daybook.Key, unknown bool, limit int) ([]daybook.Key, error)
}

// Options of New.
type Options struct {
	Channels []Named
	Routes   map[daybook.Priority]Route
	Fallback []string        // told what a channel could not tell
	Name     string          // of the installation
	URL      string          // base of links; empty: commands stand in the texts
	Secrets  func() []string // masked wherever they could show; may be nil
	NewID    func() string   // random ids of claims. Required
	Log      *slog.Logger
}

// Check returns what is wrong with o: a route or a fallback that names a channel which is not there, or two channels of
// one name.
func (o Options) Check() error {
	seen := map[string]bool{}
	for _, c := range o.Channels {
		if seen[c.Name] {
			return daybook.Invalid("there are two channels %s", c.Name)
		}
		seen[c.Name] = true
	}
	names := slices.Clone(o.Fallback)
	for _, r := range o.Routes {
		names = append(names, r.To...)
	}
	for _, name := range names {
		if !seen[name] {
			known := make([]string, 0, len(o.Channels))
			for _, c := range o.Channels {
				known = append(known, c.Name)
			}
			err := daybook.Invalid("there is no channel %s", daybook.Clip(oneLine(name), 64))
			if near := daybook.Nearest(name, known); near != "" {
				return err.WithHint("did you mean %s?", near)
			}
			return err.WithHint("define it under channels")
		}
	}
	return nil
}

// Sender is a daybook.Service. Its methods are called by one goroutine at a time; many senders may share a ledger.
//
// A text is written as a row before it is sent, and marked after. What happens between the two (a crash, a deadline) is
// known to nobody, so the send is made again, under the same key and with the same text: whoever receives it can tell.
type Sender struct {
	store    Store
	o        Options
	channels map[string]Named
	next     time.Time // nothing is to be sent before; zero: not known
}

// New returns a sender. It looks at what is open with its first Tick, also without channels: alerts get their numbers.
func New(store Store, o Options) *Sender {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Secrets == nil {
		o.Secrets = func() []string { return nil }
	}
	s := &Sender{store: store, o: o, channels: make(map[string]Named, len(o.Channels))}
	for _, c := range o.Channels {
		s.channels[c.Name] = c
	}
	return s
}

// Tick implements daybook.Service: it decides what is to be told about a few alerts, then makes a few sends.
func (s *Sender) Tick(ctx context.Context, now time.Time) (more bool, err error) {
	rows, err := s.store.AlertsDue(ctx, now, tellsPerTick)
	if err != nil {
		return false, err
	}
	for _, r := range rows {
		if err := s.tell(ctx, r, now); err != nil {
			return false, err
		}
	}
	if s.next, err = s.store.NextSend(ctx); err != nil {
		return false, err
	}
	if s.next.IsZero() || s.next.After(now) {
		return len(rows) == tellsPerTick, nil
	}
	sends, err := s.store.ClaimSends(ctx, notice.Claim{ID: s.o.NewID(), Lease: now.Add(leaseFor), Limit: sendsPerTick}, now)
	if err != nil {
		return false, err
	}
	if err := s.make(ctx, sends, now); err != nil {
		return false, err
	}
	if s.next, err = s.store.NextSend(ctx); err != nil {
		return false, err
	}
	return len(rows) == tellsPerTick || len(sends) == sendsPerTick, nil
}

// pollEvery is how often the sender looks for alerts that others write.
const pollEvery = 10 * time.Second

// Wait implements loop.Waiter.
func (s *Sender) Wait(now time.Time) time.Duration {
	if s.next.IsZero() {
		return pollEvery
	}
	return min(max(s.next.Sub(now), 0), pollEvery)
}

// tell decides about one alert and writes the decision with its texts.
func (s *Sender) tell(ctx context.Context, r notice.Row, now time.Time) error {
	d := decide(r, s.o.Routes[r.Priority], now)
	t := notice.Telling{Row: r, Next: d.next, Repeated: d.repeated, Finished: d.finished, At: now}
	if d.purpose != "" {
		f, err := s.facts(ctx, r, now)
		if err != nil {
			return err
		}
		f.Purpose, f.Round, f.Remind = d.purpose, r.Round+1, d.remind
		for _, name := range d.to {
			t.Sends = append(t.Sends, s.send(r, f, name))
		}
	}
	_, err := s.store.TellAlert(ctx, t) // not written: another sender was first, or it looks different by now
	return err
}

// facts reads what the texts of an alert are made from. What is gone is left out: the alert is told all the same.
func (s *Sender) facts(ctx context.Context, r notice.Row, now time.Time) (f Facts, err error) {
	f = Facts{URL: s.o.URL, Secrets: s.o.Secrets(), Now: now}
	if r.Alert.Key != "" {
		if f.Run, err = s.store.Run(ctx, r.Alert.Key); err != nil && daybook.CodeOf(err) != daybook.CodeNotFound {
			return f, err
		}
	}
	if err := s.subjects(ctx, r, &f); err != nil {
		return f, err
	}
	if f.Run != nil && f.Run.Key.IsUndo() {
		if f.Base, err = s.store.Run(ctx, f.Run.Key.Base()); err != nil && daybook.CodeOf(err) != daybook.CodeNotFound {
			return f, err
		}
	}
	if f.Job, err = s.store.Definition(ctx, r.Job); err != nil && daybook.CodeOf(err) != daybook.CodeNotFound {
		return f, err
	}
	return f, nil
}

// subjects reads about which subjects an alert is that those of one run share. When it is one, it is told as that one's.
func (s *Sender) subjects(ctx context.Context, r notice.Row, f *Facts) (err error) {
	if f.Run == nil || !f.Run.Fans {
		return nil
	}
	n, err := s.store.Subjects(ctx, f.Run.Key)
	if err != nil {
		return err
	}
	f.Counts = &n
	if r.Kind != daybook.AlertDeadLetter && r.Kind != daybook.AlertUnknownOutcome || f.Run.Letter != nil && f.Run.Letter.State == daybook.LetterOpen {
		return nil
	}
	if f.Subjects, err = s.store.SubjectLetters(ctx, f.Run.Key, r.Kind == daybook.AlertUnknownOutcome, listedSubjects); err != nil {
		return err
	}
	for _, k := range f.Subjects {
		one, err := s.store.Run(ctx, k)
		if daybook.CodeOf(err) == daybook.CodeNotFound {
			continue
		}
		if err != nil {
			return err
		}
		f.Runs = append(f.Runs, one)
	}
	if len(f.Runs) == 1 && len(f.Subjects) == 1 {
		f.Run = f.Runs[0]
	}
	return nil
}

// send is the send of a text on a channel, in the channel's language.
func (s *Sender) send(r notice.Row, f Facts, channel string) notice.Send {
	p := lang.For(s.channels[channel].Lang)
	t := Write(p, r, f)
	m := notice.Send{Key: notice.SendKey(r.Number, channel, f.Round), Alert: r.Alert.ID, Channel: channel, Purpose: f.Purpose, Via: f.Via,
		Lang: p.Lang(), Subject: t.Subject, Body: t.Body, Short: t.Short, Due: f.Now, MadeAt: f.Now}
	t.Details.Send = m.Key
	m.Data = t.Details.json()
	return m
}

// Test sends a test on a channel, at once and past the ledger. Errors: CodeNotFound for a channel that is not there; else
// what the channel says.
func (s *Sender) Test(ctx context.Context, channel string, now time.Time) error {
	c, ok := s.channels[channel]
	if !ok {
		names := make([]string, 0, len(s.channels))
		for _, c := range s.o.Channels {
			names = append(names, c.Name)
		}
		err := daybook.NotFound("there is no channel %s", daybook.Clip(oneLine(channel), 64))
		if near := daybook.Nearest(channel, names); near != "" {
			return err.WithHint("did you mean %s?", near)
		}
		return err
	}
	t := WriteTest(lang.For(c.Lang), channel, s.o.Name, now)
	id := "test/" + channel + "/" + s.o.NewID()
	t.Details.Send = id
	m := notice.Send{Key: id, Alert: id, Channel: channel, Purpose: notice.First, Lang: c.Lang, Subject: t.Subject, Body: t.Body, Short: t.Short,
		Data: t.Details.json(), MadeAt: now}
	return s.masked(deliver(ctx, c.Channel, m, now))
}
