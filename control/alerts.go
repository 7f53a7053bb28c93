package control

import (
	"context"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/notice"
)

// Alerts lists alerts under the ids by which people name them: the open ones by priority and age, or all, newest first.
func (c *Control) Alerts(ctx context.Context, openOnly bool, limit int) ([]notice.Row, error) {
	return c.s.AlertRows(ctx, openOnly, min(limit, maxListed))
}

// Mutes lists the mutes that hold, the one that ends first first.
func (c *Control) Mutes(ctx context.Context) ([]notice.Mute, error) { return c.s.Mutes(ctx, c.now()) }

// AckChange is what became of an acknowledgement.
type AckChange struct {
	Alert   notice.Row // afterwards
	Changed bool       // false: it was acknowledged before, or is over
}

// Ack acknowledges an alert by its id, such as al_91: it is not repeated any more. It stays open until what it is about
// ends, and a letter that stays open for a day is told once more all the same. The reason may be empty.
//
// Errors: CodeInvalid, that is no id; CodeNotFound, there is no such alert.
func (c *Control) Ack(ctx context.Context, p Person, id, note string) (AckChange, error) {
	p, err := p.check()
	if err != nil {
		return AckChange{}, err
	}
	if note, err = reason(note, daybook.Say("an acknowledgement"), false); err != nil {
		return AckChange{}, err
	}
	number, err := alertNumber(id)
	if err != nil {
		return AckChange{}, err
	}
	var change AckChange
	act := daybook.Activity{At: c.now(), Actor: p.Name, Action: "acknowledge " + notice.ID(number), Note: note}
	if change.Changed, err = c.s.AckAlert(ctx, number, act); err != nil {
		return AckChange{}, err
	}
	change.Alert, err = c.s.AlertRow(ctx, number)
	return change, err
}

// Alert returns the alert of an id. Errors as for Ack.
func (c *Control) Alert(ctx context.Context, id string) (notice.Row, error) {
	number, err := alertNumber(id)
	if err != nil {
		return notice.Row{}, err
	}
	return c.s.AlertRow(ctx, number)
}

func alertNumber(id string) (int64, error) {
	number := notice.ParseID(id)
	if number == 0 {
		return 0, daybook.Invalid("%q is not the id of an alert", daybook.Clip(id, 40)).WithHint("such as %s; daybook alert list shows them", notice.ID(91))
	}
	return number, nil
}

// Mute keeps the alerts of a job from being sent for a while; they stand open all the same, and what is open when the mute
// ends is told then. One of no length ends the mute that holds. A reason is required.
//
// Errors: CodeInvalid, no reason, or a length below 0 or above daybook.MaxDelay; CodeNotFound, no such job, with the
// nearest name.
func (c *Control) Mute(ctx context.Context, p Person, job string, length time.Duration, note string) (notice.Mute, error) {
	p, err := p.check()
	if err != nil {
		return notice.Mute{}, err
	}
	if note, err = reason(note, daybook.Say("a mute"), true); err != nil {
		return notice.Mute{}, err
	}
	if length < 0 || length > daybook.MaxDelay {
		return notice.Mute{}, daybook.Invalid("a mute of %s: at most %s, and it may be ended by one of 0", length, daybook.MaxDelay)
	}
	now := c.now()
	if _, err := c.lookUp(ctx, job, false, now); err != nil {
		return notice.Mute{}, err
	}
	m := notice.Mute{Job: job, Since: now, Until: now.Add(length), By: p.Name, Note: note}
	act := daybook.Activity{At: now, Actor: p.Name, Action: "mute", Job: job, Note: note, After: "until " + m.Until.Format(time.RFC3339)}
	return m, c.s.MuteAlerts(ctx, m, act)
}

// alertIDs returns the open alerts about a dead letter or an unknown outcome, by key.
func (c *Control) alertIDs(ctx context.Context) (map[daybook.Key]string, error) {
	open, err := c.s.AlertRows(ctx, true, maxListed)
	if err != nil {
		return nil, err
	}
	ids := make(map[daybook.Key]string, len(open))
	for _, r := range open {
		if r.Kind == daybook.AlertDeadLetter || r.Kind == daybook.AlertUnknownOutcome {
			ids[r.Key] = r.ID()
		}
	}
	return ids, nil
}
