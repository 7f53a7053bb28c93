package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/daybook-run/daybook"
)

// ReplayPlan is what a replay of many letters would do: of all that can be replayed, or of those of one job. Its id names
// exactly these letters as they stand; nothing is stored.
type ReplayPlan struct {
	ID      string // empty: there is nothing to replay
	Job     string // of one job; empty: of all
	Letters int
	// First are the letters by name, as many as are shown.
	First []daybook.Letter
	// Subjects says of how many subjects of which runs the letters are.
	Subjects map[daybook.Key]int

	alone []daybook.Key // letters of runs that are no subject of another
}

// plannedLetters is how many letters of a plan are shown by name, and how many are read at a time.
const (
	plannedLetters = 20
	letterPage     = 500
)

// PlanReplay works out a plan. Nothing is written. Errors: CodeNotFound, no such job.
func (c *Control) PlanReplay(ctx context.Context, job string) (ReplayPlan, error) {
	p := ReplayPlan{Job: job, Subjects: make(map[daybook.Key]int)}
	if job != "" {
		if err := c.mustKnow(ctx, job); err != nil {
			return p, err
		}
	}
	sum := sha256.New()
	for after := daybook.Key(""); ; {
		page, err := c.s.LettersToReplay(ctx, job, after, letterPage)
		if err != nil {
			return p, err
		}
		for _, l := range page {
			p.add(l, sum)
			after = l.Key
		}
		if len(page) < letterPage {
			break
		}
	}
	if p.Letters > 0 {
		p.ID = "pl_" + hex.EncodeToString(sum.Sum(nil)[:6])
	}
	return p, nil
}

func (p *ReplayPlan) add(l daybook.Letter, sum hash.Hash) {
	fmt.Fprintf(sum, "%s %s %d\n", l.ID, l.Key, l.OpenedAt.UnixMicro()) // a hash takes everything
	if p.Letters++; len(p.First) < plannedLetters {
		p.First = append(p.First, l)
	}
	if l.Parent != "" {
		p.Subjects[l.Parent]++
	} else {
		p.alone = append(p.alone, l.Key)
	}
}

// StartReplay replays exactly what a plan showed, and returns how many letters it replayed. When it is cut off, the rest is a plan
// of its own.
//
// Errors: CodeInvalid, no plan is named; CodeNotFound, no such job; CodeConflict, the letters are not those of the plan any more.
func (c *Control) StartReplay(ctx context.Context, p Person, id, job, note string) (replayed int, err error) {
	if p, err = p.check(); err != nil {
		return 0, err
	}
	if note, err = reason(note, daybook.Say("a replay"), false); err != nil {
		return 0, err
	}
	if id == "" {
		return 0, daybook.Invalid("no plan is named").WithHint("daybook dead replay --plan makes one")
	}
	plan, err := c.PlanReplay(ctx, job)
	if err != nil {
		return 0, err
	}
	if plan.ID != id {
		return 0, daybook.Conflict("plan %s is stale: other letters are open now than it showed", daybook.Clip(id, 40)).WithHint("daybook dead replay --plan shows what would be replayed now")
	}
	seen := make(jobsSeen)
	for _, k := range plan.alone { // parents first, so that their subjects are let go
		a, err := c.replay(ctx, p, k, note, seen)
		if err != nil {
			return replayed, err
		}
		if a.Outcome == daybook.Started {
			replayed++
		}
	}
	for parent := range plan.Subjects {
		n, err := c.replaySubjects(ctx, p, parent, note, c.now())
		if replayed += n; err != nil {
			return replayed, err
		}
	}
	c.o.Wake()
	return replayed, nil
}
