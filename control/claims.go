package control

import (
	"context"
	"strconv"
	"time"

	"github.com/daybook-run/daybook"
)

// DefaultLease is how long a claimed key stays with a program that does not renew it, unless it says otherwise.
const DefaultLease = 30 * time.Second

// shortestLease is the shortest lease that can be renewed in time.
const shortestLease = time.Second

// ClaimRequest asks for a key, and for the right to do its work.
type ClaimRequest struct {
	Request
	// Key names the key instead of job, window and subject.
	Key daybook.Key
	// Lease is how long the key stays with a holder that does not renew it; 0: the default. At most twice that.
	Lease time.Duration
	// Holder says where the work is done, for people; empty: the name of who asks.
	Holder string
	// Call is the same when the same call is made again: it is then given the claim that it has. Empty: it is a new one.
	Call string
	// Resume goes on with the run of Key, which was asked for before: no trigger is recorded.
	Resume bool
	// Asks: with Resume, the holder can ask the far side itself, and may be given a question instead of a try.
	Asks bool
	// File: what Define says stands in a file of the holder. Where the job is defined elsewhere, its policies there count, and may
	// be others; what its keys mean may not.
	File bool
}

// Claimed is the answer to a ClaimRequest.
type Claimed struct {
	// Answer is that of the trigger; with Resume it has key, run and time only.
	Answer
	// Token is the right to speak for the attempt, or for the question; empty: the key was not claimed.
	Token string
	// LeaseUntil is until when it is held without a renewal; Lease is how long that is.
	LeaseUntil time.Time
	Lease      time.Duration
	// Job is the definition that counts.
	Job *daybook.Job
	// Questions are the wire keys that the far side is to be asked about, newest first; nil: it is a try.
	Questions []string
	// Doer is who is at work on the run, or was last, when it is not claimed by this.
	Doer daybook.Text
	// Stuck is what keeps the key from being claimed when nothing but a person lets it go on.
	Stuck *Obstacle
	// Repeated: the same call had this claim already.
	Repeated bool
}

// Text says in one sentence, or a few, what became of it. It begins with the key.
func (g Claimed) Text() daybook.Text {
	r := g.run()
	switch {
	case g.Token != "" || g.Outcome == daybook.Reused || g.Outcome == daybook.Refused || r.State != daybook.Scheduled:
		return g.Answer.Text()
	case r.Hold != "":
		return daybook.Say("%s  %s", g.Key, heldText(r, g.At))
	}
	return daybook.Say("%s  waits: another run of its job is under way. Claim it again later.", g.Key)
}

// Line is Text in English.
func (g Claimed) Line() string { return g.Text().String() }

// Claim asks for a key as Trigger does, and claims it for a program that does the work itself: it renews its lease and
// reports the end. Work that is one effect is marked begun before this returns. A job that no file defines is made known
// with Request.Define, and only who claims its keys does it; of one that a file defines, the policies are the file's. When
// something keeps the key from being tried now, the answer is that of the trigger, without a token.
//
// Errors: those of Trigger; CodeInvalid, also for a lease out of bounds; CodeUnavailable, also for a clock that is off.
func (c *Control) Claim(ctx context.Context, p Person, q ClaimRequest) (Claimed, error) {
	if err := c.o.MayClaim(); err != nil {
		return Claimed{}, err
	}
	take, err := c.take(p, &q)
	if err != nil {
		return Claimed{}, err
	}
	if q.Key.IsUndo() { // nor resumed: only who runs the job knows how it takes things back
		return Claimed{}, notAsked(q.Key)
	}
	if q.Resume {
		return c.resume(ctx, q, take)
	}
	now := c.now()
	if err := c.ofKey(&q); err != nil {
		return Claimed{}, err
	}
	if err := c.defineFor(ctx, p, &q); err != nil {
		return Claimed{}, err
	}
	if q.Define != nil { // what cannot be asked for leaves no job behind
		if _, err := c.target(ctx, p, q.Request, false, now); err != nil {
			return Claimed{}, err
		}
	}
	t, err := c.target(ctx, p, q.Request, true, now)
	if err != nil {
		return Claimed{}, err
	}
	if err := t.mayTake(); err != nil {
		return Claimed{}, err
	}
	take.Key, take.Lease, take.Freezes = t.ask.Key, now.Add(q.Lease), t.ask.Freezes
	t.ask.Take = &take
	reply, run, err := c.s.Trigger(ctx, t.ask, t.template, now)
	if err != nil {
		return Claimed{}, err
	}
	t.answeredBy(run)
	got := Claimed{Job: t.job, Lease: q.Lease}
	if run != nil && holds(run, take, now) {
		got.Repeated = !run.BegunAt.IsZero()
		if run, err = c.beginClaimed(ctx, &got, run, now); err != nil {
			return Claimed{}, err
		}
	} else if reply.Outcome == daybook.Started {
		c.o.Wake()
	}
	if got.Answer, err = c.answer(ctx, t, reply, run, now); err != nil {
		return got, err
	}
	return got, c.tellWhy(ctx, &got)
}

// tellWhy adds who does what is not claimed, and whether it waits for a person.
func (c *Control) tellWhy(ctx context.Context, got *Claimed) (err error) {
	if got.Token != "" || got.Run == nil {
		return nil
	}
	if got.Run.Node != "" {
		if got.Doer, err = c.Doer(ctx, got.Run.Node); err != nil {
			return err
		}
	}
	got.Stuck, err = c.Stuck(ctx, got.Run)
	return err
}

// take checks what a request says of its claim.
func (c *Control) take(p Person, q *ClaimRequest) (daybook.Claim, error) {
	p, err := p.check()
	if err != nil {
		return daybook.Claim{}, err
	}
	if q.Lease == 0 {
		q.Lease = c.o.Lease
	}
	if most := 2 * c.o.Lease; q.Lease < shortestLease || q.Lease > most { // a longer one would look like the work of a clock that leapt
		return daybook.Claim{}, daybook.Invalid("a lease of %s is outside %s to %s", q.Lease, shortestLease, most).
			WithHint("renew it while the work goes on: a short lease tells soon when nobody is left")
	}
	holder, err := plainText(q.Holder, daybook.Say("holder"), daybook.MaxActorBytes)
	if err != nil {
		return daybook.Claim{}, err
	}
	if holder == "" {
		holder = p.Name
	}
	id := q.Call
	if id == "" {
		id = c.o.NewID()
	}
	return daybook.Claim{Node: holder, Limit: 1, NewID: func() string { return id }}, nil
}

// holds reports whether a run is held by a claim, and may be worked on.
func holds(r *daybook.Run, take daybook.Claim, now time.Time) bool {
	return r.State == daybook.Running && r.Claim == take.NewID() && now.Before(r.Lease)
}

// ofKey splits the key of a request.
func (c *Control) ofKey(q *ClaimRequest) error {
	if q.Key == "" {
		return nil
	}
	if q.Job != "" || q.Window != "" || q.Date != "" || q.Subject != "" {
		return daybook.Invalid("both a key and a job, window, date or subject are given").WithHint("give one of both: the key has all of them")
	}
	parts, err := checkKey(q.Key)
	if err != nil {
		return err
	}
	q.Job, q.Window = parts.Job, parts.Window
	if parts.N > 1 {
		q.Window += "~" + strconv.Itoa(parts.N)
	}
	if parts.Subject != "" {
		q.Subject, err = daybook.DecodeSubject(parts.Subject)
	}
	return err
}

// resume claims a run that waits, without a trigger.
func (c *Control) resume(ctx context.Context, q ClaimRequest, take daybook.Claim) (Claimed, error) {
	now := c.now()
	run, err := c.runOf(ctx, q.Key)
	if err != nil {
		return Claimed{}, err
	}
	k, err := c.lookUp(ctx, run.Job, false, now)
	if err != nil {
		return Claimed{}, err
	}
	got := Claimed{Job: k.job, Lease: q.Lease}
	take.Key, take.Lease = q.Key, now.Add(q.Lease)
	if q.Source != daybook.SourceOnce && k.state.Home == "" { // a line of the crontab does not wait for freezes of a file
		take.Freezes = c.o.Freezes().At(now)
	}
	mine := holds(run, take, now)
	got.Repeated = mine && !run.BegunAt.IsZero()
	if !mine && run.State.Live() && (run.Reason != daybook.ReasonSettling || q.Asks) {
		runs, err := c.s.Claim(ctx, take, now)
		if err != nil {
			return Claimed{}, err
		}
		if mine = len(runs) == 1; mine {
			run = runs[0]
		}
	}
	switch {
	case mine && run.Asking != "" && q.Asks && run.Effect != nil:
		got.Questions, got.LeaseUntil = run.Effect.WireKeys(), run.Lease
		got.Token, err = c.AttemptToken(ctx, daybook.AttemptID{Key: run.Key, Fence: run.Fence, Claim: run.Asking})
	case mine && run.Asking != "": // it became a question meanwhile, or one that only the work itself can ask
		err = c.s.ReleaseAsking(ctx, []*daybook.Run{run}, now)
	case mine:
		run, err = c.beginClaimed(ctx, &got, run, now)
	default:
		run, err = c.s.Run(ctx, q.Key)
	}
	got.Key, got.Run, got.At = q.Key, run, now
	if err != nil {
		return got, err
	}
	return got, c.tellWhy(ctx, &got)
}

// beginClaimed marks, durably, that the work of a claimed run begins, and gives the right to speak for it. When it may not
// begin, since what it did before is open, that is settled first and nothing is given.
func (c *Control) beginClaimed(ctx context.Context, got *Claimed, run *daybook.Run, now time.Time) (*daybook.Run, error) {
	if run.BegunAt.IsZero() {
		if err := daybook.CheckWireKey(run.WireKey()); err != nil && run.OneEffect() {
			return c.turnedAway(ctx, run.Next(daybook.Outcome{Result: daybook.ResultPermanent, Error: err.Error()}, got.Job.Policy(), now))
		}
		var e *daybook.StepRecord
		if run.OneEffect() {
			var ok bool
			if e, ok = run.Begin(got.Job.Policy(), now); !ok {
				return c.turnedAway(ctx, run.Unsettled(got.Job.Policy(), now))
			}
		}
		if err := c.s.Begin(ctx, run, e, now); err != nil {
			return run, err
		}
	}
	var err error
	got.LeaseUntil = run.Lease
	got.Token, err = c.AttemptToken(ctx, run.ID())
	return run, err
}

// turnedAway records that a claimed run did not begin.
func (c *Control) turnedAway(ctx context.Context, t daybook.Transition) (*daybook.Run, error) {
	if _, err := c.s.Apply(ctx, []daybook.Transition{t}); err != nil {
		return nil, err
	}
	c.o.Wake()
	return c.s.Run(ctx, t.Key)
}

// Renewed is what the holder of a claim is told.
type Renewed struct {
	LeaseUntil time.Time
	// CancelledBy is who asked for the end of the attempt; empty: nobody.
	CancelledBy string
}

// Renew keeps a claim, or a question, for another lease; 0: the default.
//
// Errors: CodeStale, it is not held any more: what was begun is to be ended, and may still be reported; CodeInvalid, a
// lease out of bounds; CodeNotFound; CodeUnavailable.
func (c *Control) Renew(ctx context.Context, id daybook.AttemptID, lease time.Duration) (Renewed, error) {
	q := ClaimRequest{Lease: lease}
	if _, err := c.take(Person{Name: "holder"}, &q); err != nil {
		return Renewed{}, err
	}
	r, err := c.runOf(ctx, id.Key)
	if err != nil {
		return Renewed{}, err
	}
	held := daybook.Run{Key: id.Key, Fence: id.Fence, Claim: id.Claim}
	if r.Asking == id.Claim {
		held.Claim, held.Asking = r.Claim, id.Claim
	}
	now := c.now()
	notices, err := c.s.Renew(ctx, []*daybook.Run{&held}, now.Add(q.Lease), now)
	if err != nil {
		return Renewed{}, err
	}
	told := Renewed{LeaseUntil: now.Add(q.Lease)}
	for _, n := range notices {
		if n.Lost {
			return Renewed{}, notHeld(id)
		}
		told.CancelledBy = n.CancelledBy
	}
	return told, nil
}

func notHeld(id daybook.AttemptID) error {
	return daybook.Stale("%s is not held under this token any more", id.Key).WithHint("end the work and report how: what is still open is settled by it")
}
