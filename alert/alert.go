// Package alert tells people: it makes the text of an alert (text.go), decides who is told when (decide.go), sends it on
// channels (sender.go), and finds jobs that are silent or late (silence.go). It starts no work, changes no run and never
// decides what an alert is about: rows written by others are all it knows. The loop calls it, configuration reads its
// table.
//
// A new channel is one file here and one line in Types.
package alert

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/lang"
	"github.com/daybook-run/daybook/internal/notice"
)

// Kinds that this room raises by itself.
const (
	JobSilent daybook.AlertKind = "job_silent" // no good window for longer than max_silence
	kindTest  daybook.AlertKind = "test"
)

// Type is a type of channel.
type Type struct {
	Name  string   // as in the file
	File  string   // that has it
	Takes []string // the settings it takes beside type and lang; the first ones are required
	Needs int      // how many of them
	New   func(Settings) (Channel, error)
}

// Types is the table of the types of channel. It is never changed.
var Types = []Type{
	{Name: "exec", File: "exec.go", Takes: []string{"run", "env", "timeout"}, Needs: 1, New: newExec},
	{Name: "file", File: "file.go", Takes: []string{"path"}, Needs: 1, New: newFile},
	{Name: "webhook", File: "webhook.go", Takes: []string{"url", "secret", "timeout"}, Needs: 2, New: newWebhook},
}

// Channel delivers texts to people. Send returns nil once the far side has taken the message. A daybook.Permanent error
// says that trying again cannot help, a daybook.RetryAfter one when it may; anything else is tried again on the ladder,
// with the same key and the same text. A message may therefore arrive twice; its key tells.
type Channel interface {
	Send(ctx context.Context, m Message) error
}

// Message is one text on its way.
type Message struct {
	notice.Send           // Key, Subject, Body, Short; Data is the JSON of Details, the same bytes in every try
	Details     Details   // for programs
	Now         time.Time // of this try
}

// Details is an alert for programs.
type Details struct {
	ID        string            `json:"id"` // al_91
	Send      string            `json:"send,omitempty"`
	Kind      daybook.AlertKind `json:"kind"`
	Purpose   notice.Purpose    `json:"purpose"`
	Priority  daybook.Priority  `json:"priority"`
	Job       string            `json:"job"`
	Key       daybook.Key       `json:"key,omitempty"`
	Subject   string            `json:"subject"`
	Short     string            `json:"short"`
	Error     string            `json:"error,omitempty"`
	LastGood  string            `json:"last_good,omitempty"`
	State     daybook.State     `json:"state,omitempty"`
	Attempts  int               `json:"attempts,omitempty"`
	Owner     string            `json:"owner,omitempty"`
	Runbook   string            `json:"runbook,omitempty"`
	URL       string            `json:"url,omitempty"`
	At        time.Time         `json:"at"` // the alert was written
	Recovered *time.Time        `json:"recovered,omitempty"`
}

// Settings is what the file says of a channel, secrets resolved.
type Settings struct {
	Name    string // of the channel: [a-z0-9][a-z0-9_-]{0,63}
	Type    string
	Lang    string // of its texts; empty: English
	URL     string
	Secret  string
	Run     []string
	Env     map[string]string
	Path    string
	Timeout time.Duration // of one send; 0: DefaultTimeout
}

// DefaultTimeout bounds one send, MaxTimeout what a channel may ask for.
const (
	DefaultTimeout = 20 * time.Second
	MaxTimeout     = time.Minute
)

// Named is a channel under the name by which routes know it.
type Named struct {
	Name string
	Lang string
	Channel
}

// NewChannel makes a channel. Errors have CodeInvalid: a type that is not known, a setting that is missing or that the
// type does not take, a value that cannot be right.
func NewChannel(s Settings) (Named, error) {
	if err := daybook.CheckName(s.Name); err != nil {
		return Named{}, err
	}
	i := slices.IndexFunc(Types, func(t Type) bool { return t.Name == s.Type })
	if i < 0 {
		names := make([]string, len(Types))
		for i, t := range Types {
			names[i] = t.Name
		}
		err := daybook.Invalid("channel %s: there is no type %q: it is one of %s", s.Name, daybook.Clip(s.Type, 40), daybook.Words(names))
		if near := daybook.Nearest(s.Type, names); near != "" {
			return Named{}, err.WithHint("did you mean %s?", near)
		}
		return Named{}, err
	}
	if s.Lang != "" && !slices.Contains(lang.Languages, s.Lang) {
		return Named{}, daybook.Invalid("channel %s: lang %q is not one of %s", s.Name, daybook.Clip(s.Lang, 40), daybook.Words(lang.Languages))
	}
	t := Types[i]
	for name, given := range s.given() {
		at := slices.Index(t.Takes, name)
		switch {
		case given && at < 0:
			return Named{}, daybook.Invalid("channel %s: type %s takes no %s", s.Name, t.Name, name)
		case !given && at >= 0 && at < t.Needs:
			return Named{}, daybook.Invalid("channel %s: type %s needs %s", s.Name, t.Name, name)
		}
	}
	if s.Timeout < 0 || s.Timeout > maxTimeout {
		return Named{}, daybook.Invalid("channel %s: a timeout of %s is outside 0 to %s", s.Name, s.Timeout, maxTimeout)
	}
	if s.Timeout == 0 {
		s.Timeout = DefaultTimeout
	}
	c, err := t.New(s)
	return Named{Name: s.Name, Lang: lang.For(s.Lang).Lang(), Channel: c}, err
}

func (s Settings) given() map[string]bool {
	return map[string]bool{"url": s.URL != "", "secret": s.Secret != "", "run": len(s.Run) > 0, "env": len(s.Env) > 0, "path": s.Path != "", "timeout": s.Timeout != 0}
}

func (d Details) json() string {
	b, err := json.Marshal(d)
	if err != nil { // Details hold nothing that JSON cannot hold
		panic("alert: " + d.ID + ": " + err.Error())
	}
	return string(b)
}
