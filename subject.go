package daybook

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
)

// Subject is one business object of a window, as a listing names it: its run is job:window/subject.
type Subject struct {
	ID      string // as people write it; in keys it is encoded
	Zone    string // IANA name of its own zone; empty: that of the job
	Payload any    // becomes JSON; nil: none. The first one listed is kept
}

// Lister names the subjects of a window, one after the other. It may be called more than once for a window, by one attempt
// after another: what it names again is there already, and what it names for the first time is added. An error ends it.
type Lister func(ctx context.Context, w Window) iter.Seq2[Subject, error]

// Handling is how an application does a job, beside the work itself.
type Handling struct {
	Ask  func(ctx context.Context, wireKey string) (any, Answer, error) // the probe of the whole attempt
	List Lister
}

// HandleOption says more about how a job is done.
type HandleOption func(*Handling)

// Subjects makes a job one that is done for each of its subjects by itself. For each window list names them, and the work
// is called once a subject, each under a key of its own.
func Subjects(list Lister) HandleOption { return func(h *Handling) { h.List = list } }

// Listing is where the subjects of a job that a file defines come from: a query of a database, or an address that answers
// with them.
type Listing struct {
	Name string `json:",omitempty"` // as the file names it; empty: it stands with the job
	DSN  string `json:",omitempty"` // a reference to a secret, or a file of SQLite
	SQL  string `json:",omitempty"`
	URL  string `json:",omitempty"`
}

// ZoneOfSubject is the zone of a job whose subjects each have their own.
const ZoneOfSubject = "subject"

// MaxSubjectFaults bounds how many rows of a listing that name no subject are told one by one.
const MaxSubjectFaults = 5

// Fans reports whether j is done for each of its subjects by itself.
func (j *Job) Fans() bool { return j.HasSubjects || j.Subjects != (Listing{}) }

// input returns the payload of a subject as JSON.
func (s Subject) input() (json.RawMessage, error) {
	if s.Payload == nil {
		return nil, nil
	}
	b, err := json.Marshal(s.Payload)
	if err != nil {
		return nil, Invalid("subject %q: its payload is not JSON", Clip(s.ID, 60)).Because(err)
	}
	if string(b) == "null" {
		return nil, nil
	}
	if len(b) > MaxPayloadBytes {
		return nil, Invalid("subject %q: its payload has %d bytes: at most %d are allowed", Clip(s.ID, 60), len(b), MaxPayloadBytes)
	}
	return b, nil
}

// Child prepares the run of one subject of r, which lists. w is the window in the zone of the subject. It waits for its
// turn. Errors have CodeInvalid: what was listed is no subject.
func (r *Run) Child(j *Job, s Subject, w Window) (*Run, error) {
	id, err := EncodeSubject(s.ID)
	if err != nil {
		return nil, err
	}
	input, err := s.input()
	if err != nil {
		return nil, err
	}
	key := r.Key + "/" + Key(id)
	if len(key) > MaxKeyBytes {
		return nil, Invalid("key of %d bytes: at most %d are allowed", len(key), MaxKeyBytes)
	}
	p := r.Key.Parts()
	c := NewRun(j, r.Revision, w, p.N, id, r.ClaimedAt)
	c.Key, c.Job, c.Parent = key, r.Job, r.Key
	c.Input, c.Fire, c.TZData, c.Home, c.Lane, c.Priority = input, r.Fire, r.TZData, r.Home, r.Lane, r.Priority
	c.FirstSource, c.FirstActor = r.FirstSource, r.FirstActor
	c.Cover, c.Due, c.NotBefore = r.Cover, r.NotBefore, r.NotBefore
	c.Listed, c.Hold = r.Fence, HoldTurn
	if s.Zone != "" {
		c.Zone, c.Cover = s.Zone, Bounds{Start: w.Start, End: w.End}
	}
	return c, nil
}

// alike returns what an error has in common with those of other subjects: without the subject, numbers and what follows the
// first line.
func alike(text string, subject string) string {
	text, _, _ = strings.Cut(text, "\n")
	if subject != "" {
		text = strings.ReplaceAll(text, subject, "*")
	}
	var b strings.Builder
	digits := false
	for _, c := range text {
		if c >= '0' && c <= '9' {
			if !digits {
				b.WriteByte('#')
			}
			digits = true
			continue
		}
		digits = false
		b.WriteRune(c)
	}
	return Clip(b.String(), 160)
}
