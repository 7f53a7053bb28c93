package control

import (
	"context"
	"time"

	"github.com/daybook-run/daybook"
)

// AskedToEnd is the act by which a person ended a run, or asked for its end.
type AskedToEnd struct {
	At   time.Time // zero: not known any more
	By   string
	Note string
	// With is the run that listed the subject of this one, when it was that one that he ended: he cancelled it, or dismissed its letter.
	With daybook.Key
}

// AskedToEnd tells who asked for the end of a run last, as far as the newest 1,000 acts since it was made hold that; nil: nobody did, or
// it was taken up again since.
func (c *Control) AskedToEnd(ctx context.Context, r *daybook.Run) (*AskedToEnd, error) {
	key, asked := r.Key, &AskedToEnd{By: r.CancelledBy}
	if r.Reason == daybook.ReasonWithWindow {
		key, asked.With = r.SubjectOf(), r.SubjectOf()
	}
	acts, err := c.s.Activities(ctx, r.CreatedAt, "", maxListed)
	if err != nil {
		return nil, err
	}
	for _, a := range acts { // the newest first
		if a.Key != key {
			continue
		}
		switch {
		case a.Action == "cancel", a.Action == "dismiss" && asked.With != "":
			asked.At, asked.By, asked.Note = a.At, a.Actor, a.Note
			return asked, nil
		case a.Action == "reopen", a.Action == "replay":
			return nil, nil
		}
	}
	if asked.By == "" && asked.With == "" {
		return nil, nil
	}
	return asked, nil
}

// Text says who it was, in a zone.
func (a *AskedToEnd) Text(loc *time.Location) daybook.Text {
	said := daybook.Say("to end by %s", whoever(oneLine(a.By)))
	if a.With != "" {
		said = daybook.Say("to end with %s by %s", a.With, whoever(oneLine(a.By)))
	}
	if !a.At.IsZero() {
		said = daybook.Say("%s, %s", said, a.At.In(loc).Format(time.DateTime)+" "+loc.String())
	}
	if a.Note != "" {
		said = daybook.Say("%s: %s", said, oneLine(a.Note))
	}
	return said
}
