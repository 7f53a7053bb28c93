package control

import (
	"context"
	"time"

	"github.com/daybook-run/daybook"
)

// ObstacleKind is how something keeps a run from going on.
type ObstacleKind string

// The kinds.
const (
	ObstacleSerial ObstacleKind = "serial key" // another run has it
	ObstacleWindow ObstacleKind = "window"     // another window of the job goes first
	ObstacleTurn   ObstacleKind = "turn"       // the run that listed the subject lets nobody go
	ObstacleHold   ObstacleKind = "hold"       // the run itself is held
)

// Obstacle is something that keeps a run from going on.
type Obstacle struct {
	Kind    ObstacleKind
	Key     daybook.Key // the run that stands in the way; with a hold the run itself
	Serial  string      // the serial key that Key has
	Since   time.Time   // it has the serial key
	Waiting int         // runs that wait for the serial key
	// Person: nobody but a person takes it away. Why says what he is wanted for, Do what he does.
	Person  bool
	Why, Do daybook.Text
}

// obstaclesDeep is how far it is followed what waits for what.
const obstaclesDeep = 4

// Obstacles returns what a run waits for that another has, or that a person keeps from it; of a run with subjects, what these
// wait for, at most 20 and the oldest first. A run whose time has not come, or that waits for its turn, for a probe or for the end of
// a freeze has none.
func (c *Control) Obstacles(ctx context.Context, r *daybook.Run) ([]Obstacle, error) {
	return c.obstacles(ctx, r, obstaclesDeep)
}

func (c *Control) obstacles(ctx context.Context, r *daybook.Run, deep int) ([]Obstacle, error) {
	switch {
	case r == nil || !r.State.Live() || r.State == daybook.Running && !r.FannedOut():
		return nil, nil
	case r.State == daybook.Running:
		if r.Subjects == nil || r.Subjects.Held == 0 {
			return nil, nil
		}
		locks, err := c.s.LocksOfSubjects(ctx, r.Key, namedLetters)
		if err != nil {
			return nil, err
		}
		return c.holders(ctx, r, locks, deep)
	case r.Hold == daybook.ReasonSerial:
		l, err := c.s.Lock(ctx, r.Serial)
		if err != nil || l == nil {
			return nil, err
		}
		return c.holders(ctx, r, []daybook.Lock{*l}, deep)
	case (r.Hold == daybook.HoldTurn || r.Hold == daybook.ReasonBreaker) && r.SubjectOf() != "":
		o := Obstacle{Kind: ObstacleTurn, Key: r.SubjectOf()}
		if err := c.judge(ctx, &o, 0); err != nil || !o.Person {
			return nil, err
		}
		return []Obstacle{o}, nil
	case r.Hold != "":
		o := Obstacle{Kind: ObstacleHold, Key: r.Key, Person: true}
		if o.Why, o.Do = heldByPerson(r); o.Why.IsZero() {
			return nil, nil
		}
		return []Obstacle{o}, nil
	}
	if r.Due.After(c.now()) {
		return nil, nil
	}
	first, err := c.s.Ahead(ctx, r.Key)
	if err != nil || first == "" {
		return nil, err
	}
	o := Obstacle{Kind: ObstacleWindow, Key: first}
	err = c.judge(ctx, &o, deep)
	return []Obstacle{o}, err
}

// holders are those who have locks that r waits for.
func (c *Control) holders(ctx context.Context, r *daybook.Run, locks []daybook.Lock, deep int) (list []Obstacle, err error) {
	for _, l := range locks {
		if l.Key == r.Key {
			continue
		}
		o := Obstacle{Kind: ObstacleSerial, Key: l.Key, Serial: l.Serial, Since: l.Since, Waiting: l.Waiting}
		if err := c.judge(ctx, &o, deep); err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return list, nil
}

// judge finds out whether the run of an obstacle waits for a person, or for something that does.
func (c *Control) judge(ctx context.Context, o *Obstacle, deep int) error {
	r, err := c.s.Run(ctx, o.Key)
	if daybook.CodeOf(err) == daybook.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if l := r.Letter; r.State == daybook.Dead && l != nil && l.State == daybook.LetterOpen {
		o.Person, o.Why, o.Do = true, daybook.Say("%s is a dead letter", r.Key), letterDo(*l, r, c.asks(ctx, r))
		if l.Kind == daybook.LetterUnknown {
			o.Why = daybook.Say("the outcome of %s is unknown", r.Key)
		}
		return nil
	}
	if deep == 0 {
		return nil
	}
	if _, err := c.subjectsOf(ctx, r); err != nil {
		return err
	}
	behind, err := c.obstacles(ctx, r, deep-1)
	if first := forPerson(r, behind); first != nil && (r.Subjects == nil || r.Subjects.Waiting == 0) { // else some may be let go soon
		o.Person, o.Why, o.Do = true, first.Why, first.Do
	}
	return err
}

// heldByPerson says what a person does about a run that is held until he does; zero: it is not.
func heldByPerson(r *daybook.Run) (why, do daybook.Text) {
	switch r.Hold {
	case daybook.ReasonPaused:
		return daybook.Say("job %s is paused", r.Job), command("daybook job resume %s", r.Job)
	case daybook.ReasonClock, daybook.ReasonRestored:
		return daybook.Say("%s is held: %s", r.Key, r.Hold), command("daybook freeze list")
	}
	return daybook.Text{}, daybook.Text{}
}

// forPerson returns the first of the obstacles of a run when it cannot go on before a person has taken them away, else nil.
func forPerson(r *daybook.Run, list []Obstacle) *Obstacle {
	for _, o := range list {
		if !o.Person {
			return nil
		}
	}
	if n := r.Subjects; n != nil && (len(list) == namedLetters || n.States[daybook.Running] > 0 || n.UnderWay() > n.Held+n.Waiting) {
		return nil // some go on
	}
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// Stuck returns what a run waits for when nothing but a person lets it go on, with what he does; nil: it goes on by itself, or has
// ended. Subjects that wait for their turn may be let go within some seconds.
func (c *Control) Stuck(ctx context.Context, r *daybook.Run) (*Obstacle, error) {
	list, err := c.Obstacles(ctx, r)
	if err != nil {
		return nil, err
	}
	return forPerson(r, list), nil
}

// ForPerson says of r, which is stuck, that only a person lets it go on.
func (o Obstacle) ForPerson(r *daybook.Run) daybook.Text {
	if o.Kind == ObstacleSerial {
		return daybook.Say("%s waits for serial key %s, which %s has, and for a person: %s", r.Key, o.Serial, o.Key, o.Why)
	}
	return daybook.Say("%s waits for a person: %s", r.Key, o.Why)
}

// Text says who stands in the way; zero: what holds the run, or that its turn does not come, is told as such.
func (o Obstacle) Text(zone *time.Location) daybook.Text {
	switch o.Kind {
	case ObstacleSerial:
		return daybook.Say("%s, which has serial key %s since %s", o.Key, o.Serial, longClock(o.Since, zone))
	case ObstacleWindow:
		return daybook.Say("%s, another window of its job, which goes first", o.Key)
	}
	return daybook.Text{}
}

// ObstacleJSON is what a run waits for.
type ObstacleJSON struct {
	Kind    ObstacleKind `json:"kind"`
	Key     daybook.Key  `json:"key"`
	Serial  string       `json:"serial,omitempty"`
	Since   time.Time    `json:"since,omitzero"`
	Waiting int          `json:"waiting,omitempty"`
	Person  bool         `json:"person"` // nobody but a person takes it away
	Why     daybook.Text `json:"why,omitzero"`
	Do      daybook.Text `json:"do,omitzero"`
}

// NewObstacleJSON returns one of them as it is answered; nil: there is none.
func NewObstacleJSON(o *Obstacle) *ObstacleJSON {
	if o == nil {
		return nil
	}
	j := ObstacleJSON(*o)
	return &j
}

// NewObstaclesJSON returns what a run waits for as it is answered.
func NewObstaclesJSON(list []Obstacle) []ObstacleJSON {
	var answer []ObstacleJSON
	for _, o := range list {
		answer = append(answer, ObstacleJSON(o))
	}
	return answer
}
