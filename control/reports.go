package control

import (
	"context"
	"net/url"
	"time"

	"github.com/daybook-run/daybook"
)

// PathOf writes a key as one segment of a path, as addresses of the API have it.
func PathOf(k daybook.Key) string { return url.PathEscape(string(k)) }

// AttemptToken returns the token of an attempt: the right to speak for it, by whichever node hears it.
func (c *Control) AttemptToken(ctx context.Context, id daybook.AttemptID) (string, error) {
	secret, err := c.secret(ctx)
	if err != nil {
		return "", err
	}
	return id.Token(secret), nil
}

// ofCommand tells the tokens of commands that a serve itself has started from those that are given to programs elsewhere.
const ofCommand = " command"

// CommandToken is AttemptToken for a command that this very program starts on its machine: what such work says is to be run
// here is run here.
func (c *Control) CommandToken(ctx context.Context, id daybook.AttemptID) (string, error) {
	secret, err := c.secret(ctx)
	if err != nil {
		return "", err
	}
	return id.Token(secret + ofCommand), nil
}

// OfCommand reports whether a token is one of CommandToken.
func (c *Control) OfCommand(ctx context.Context, token string) bool {
	secret, err := c.secret(ctx)
	if err != nil {
		return false
	}
	_, ok := daybook.ParseAttemptToken(secret+ofCommand, token)
	return ok
}

// AttemptOf returns the attempt that a token speaks for. Errors have CodeDenied: the token is none of this ledger's.
func (c *Control) AttemptOf(ctx context.Context, token string) (daybook.AttemptID, error) {
	secret, err := c.secret(ctx)
	if err != nil {
		return daybook.AttemptID{}, err
	}
	id, ok := daybook.ParseAttemptToken(secret, token)
	if !ok {
		id, ok = daybook.ParseAttemptToken(secret+ofCommand, token)
	}
	if !ok {
		return daybook.AttemptID{}, daybook.Denied("the token is not one that this ledger gave to an attempt").
			WithHint("send the header Daybook-Token as it was given, unchanged")
	}
	return id, nil
}

// secret is the ledger's, read once.
func (c *Control) secret(ctx context.Context) (string, error) {
	c.mu.Lock()
	secret := c.sealed
	c.mu.Unlock()
	if secret != "" {
		return secret, nil
	}
	secret, err := c.s.Secret(ctx, c.o.NewSecret)
	if err == nil {
		c.mu.Lock()
		c.sealed = secret
		c.mu.Unlock()
	}
	return secret, err
}

// Reported is what became of a report.
type Reported struct {
	// Run is the record as it stands afterwards.
	Run *daybook.Run
	// Late: the attempt had been declared over, and the report settled what was open.
	Late bool
}

// Report takes what an attempt says of its end: as its end while it is under way, and as a late report while what it left
// open is not settled. It is taken once.
//
// Errors: CodeStale, the run has moved on, or the attempt reported before; the report changed nothing, and is kept as
// evidence when it says something new. CodeNotFound, the ledger has no such run; CodeUnavailable.
func (c *Control) Report(ctx context.Context, id daybook.AttemptID, o daybook.Outcome) (Reported, error) {
	now := c.now()
	o, err := c.masked(id.Key.Job(), o)
	if err != nil {
		return Reported{}, err
	}
	for range staleTries {
		r, err := c.runOf(ctx, id.Key)
		if err != nil {
			return Reported{}, err
		}
		t, ok, err := c.endOf(ctx, r, id, o, now)
		if err != nil {
			return Reported{}, err
		}
		if !ok {
			return Reported{}, c.refuseReport(ctx, r, id, o, now)
		}
		if t.Attempt != nil {
			t.Attempt.Command = o.Command
		}
		applied, err := c.s.Apply(ctx, []daybook.Transition{t})
		if err != nil {
			return Reported{}, err
		}
		if applied[0].Stale {
			continue
		}
		c.o.Reported(id, o.Result)
		c.o.Wake()
		after, err := c.s.Run(ctx, id.Key)
		return Reported{Run: after, Late: t.On == daybook.OnLateReport}, err
	}
	return Reported{}, changesAllTheTime(id.Key)
}

// endOf decides what a report does. False: nothing.
func (c *Control) endOf(ctx context.Context, r *daybook.Run, id daybook.AttemptID, o daybook.Outcome, now time.Time) (daybook.Transition, bool, error) {
	if r.ID() != id {
		return c.endBefore(ctx, r, id, o, now)
	}
	p, err := c.policyOf(ctx, r.Job)
	if err != nil {
		return daybook.Transition{}, false, err
	}
	if r.State == daybook.Running {
		return r.Next(o, p, now), true, nil
	}
	t, ok := r.Late(o, p, now)
	return t, ok, nil
}

// endBefore decides what a report of an earlier attempt does: it counts when it says done and nothing has begun since.
func (c *Control) endBefore(ctx context.Context, r *daybook.Run, id daybook.AttemptID, o daybook.Outcome, now time.Time) (daybook.Transition, bool, error) {
	if o.Result != daybook.ResultDone || !r.OneEffect() {
		return daybook.Transition{}, false, nil
	}
	tries, err := c.s.Attempts(ctx, id.Key)
	for _, a := range tries {
		if !a.Probe && a.Fence == id.Fence && a.Claim == id.Claim {
			t, ok := r.LateBefore(a.Fence, a.WireKey, o, now)
			return t, ok, err
		}
	}
	return daybook.Transition{}, false, err
}

// policyOf is what the definition that counts says about ends.
func (c *Control) policyOf(ctx context.Context, job string) (daybook.Policy, error) {
	if j, ok := c.o.Defined(job); ok {
		return j.Policy(), nil
	}
	j, err := c.s.Definition(ctx, job)
	if err != nil {
		return daybook.Policy{}, err
	}
	return j.Policy(), nil
}

// masked returns an outcome without the secrets of its job.
func (c *Control) masked(job string, o daybook.Outcome) (daybook.Outcome, error) {
	secrets, err := c.secretsOf(job)
	return o.Mask(secrets), err
}

// secretsOf is what must not show in what is kept of a job.
func (c *Control) secretsOf(job string) ([]string, error) {
	secrets, err := c.o.Secrets(job)
	if err != nil {
		return nil, daybook.New(daybook.CodeUnavailable, "the secrets of job %s cannot be read to mask them in the report", job).Because(err).
			WithHint("report again when they can be read")
	}
	return secrets, nil
}

// refuseReport says why a report changes nothing, and keeps what it says that is new.
func (c *Control) refuseReport(ctx context.Context, r *daybook.Run, id daybook.AttemptID, o daybook.Outcome, now time.Time) error {
	tries, err := c.s.Attempts(ctx, id.Key)
	if err != nil {
		return err
	}
	var twice *daybook.Twice
	for _, a := range tries {
		if a.Probe || a.Fence != id.Fence || a.Claim != id.Claim {
			continue
		}
		if a.Result == o.Result || a.LateTaken && a.LateResult == o.Result {
			return saidBefore(id, o.Result)
		}
		if o.Result == daybook.ResultDone {
			twice = r.DoneTwice(daybook.StepRun, a.WireKey, now)
		}
	}
	err = c.s.Evidence(ctx, daybook.Attempt{Key: id.Key, Fence: id.Fence, Claim: id.Claim, LateResult: o.Result, LateError: o.Error, LateAt: now}, twice)
	if err != nil {
		return err
	}
	return tooLate(r, id)
}

func saidBefore(id daybook.AttemptID, result daybook.Result) error {
	return daybook.Stale("%s has this report already: %s", id.Key, result).WithHint("nothing is left to report for this attempt")
}

func tooLate(r *daybook.Run, id daybook.AttemptID) error {
	e := daybook.Stale("a later attempt of %s has taken over: the report changes nothing, and is kept as evidence", id.Key)
	if r.ID() == id {
		e = daybook.Stale("the attempt of %s is over, and the run is %s: the report changes nothing, and is kept as evidence", id.Key, r.State)
	}
	return e.WithHint("daybook key show %s tells what happened", id.Key)
}

// SafeText makes what a program printed fit to be stored and shown, and cuts it at its limit.
func (c *Control) SafeText(text string, limit int) string {
	return daybook.Clip(c.o.SafeText([]byte(text)), limit)
}

// ReadReport reads what work says of its end. Errors have CodeInvalid. An outcome that is not given is done.
func (c *Control) ReadReport(body []byte) (daybook.Outcome, error) {
	o, err := c.o.ReadReport(body)
	if o.Result == "" {
		o.Result = daybook.ResultDone
	}
	return o, err
}
