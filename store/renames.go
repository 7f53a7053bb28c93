package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

func splitNames(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// carried says, for each job that stands after changes, which earlier names it carries on, newest first.
func carried(known map[string]daybook.JobState, changes []daybook.Revision) map[string][]string {
	all := make(map[string][]string)
	for _, c := range changes {
		if c.Gone || c.Job.Formerly == "" {
			continue
		}
		names := []string{c.Job.Formerly}
		for _, n := range known[c.Job.Formerly].Formerly {
			if n != c.Job.Name { // taken back: it is its own again
				names = append(names, n)
			}
		}
		all[c.Job.Name] = names
	}
	return all
}

// checkCarried refuses a name that somebody else carries on: what is asked for under it would be done twice.
func checkCarried(known map[string]daybook.JobState, changes []daybook.Revision, retired func(daybook.JobState) bool) error {
	after := carried(known, changes)
	named := make(map[string]bool, len(changes))
	for _, c := range changes {
		named[c.Job.Name] = !c.Gone
	}
	for name, st := range known { // those that do not change carry on what they did
		if _, changed := named[name]; !changed && st.RetiredAt.IsZero() && !retired(st) {
			after[name] = st.Formerly
		}
	}
	for heir, names := range after {
		for _, n := range names {
			old := known[n]
			switch {
			case n == heir || named[n]:
				return carriedOn(n, heir)
			case old.RetiredAt.IsZero() && old.Name != "" && old.Home != homeOf(heir, known, changes) && old.Home != daybook.HomeOnce:
				return elsewhere(old)
			}
		}
	}
	return nil
}

func homeOf(name string, known map[string]daybook.JobState, changes []daybook.Revision) string {
	for _, c := range changes {
		if c.Job.Name == name {
			return c.Home
		}
	}
	return known[name].Home
}

// carriedOn refuses a name that another job has taken over.
func carriedOn(name, heir string) error {
	return daybook.Conflict("job %s is called %s now, which carries on what stands under the old name", name, heir).
		WithHint("ask for %s; to take the rename back: formerly: %s in the job %s", heir, heir, name)
}

const setFormerly = `UPDATE daybook_jobs SET formerly = $2 WHERE name = $1`

const setRenamed = `UPDATE daybook_jobs SET renamed_to = $2, home = $3 WHERE name = $1`

const dropRenamed = `UPDATE daybook_jobs SET renamed_to = '' WHERE name = $1`

const pausedSince = `UPDATE daybook_jobs SET paused_by = $2, paused_note = $3 WHERE name = $1`

// carryOn makes a job carry on earlier names, newest first, in place of those it carried on so far.
func (t *tx) carryOn(ctx context.Context, j takenJob, known map[string]daybook.JobState, names []string, now time.Time) error {
	job, had := j.c.Job.Name, known[j.c.Job.Name].Formerly
	if !slices.Equal(had, names) {
		if _, err := t.exec(ctx, setFormerly, job, strings.Join(names, ",")); err != nil {
			return err
		}
	}
	for _, n := range had {
		if slices.Contains(names, n) {
			continue
		}
		for _, statement := range []string{dropRenamed, holdRetired} {
			if _, err := t.exec(ctx, statement, n); err != nil {
				return err
			}
		}
	}
	if j.state.PausedBy != "" {
		if _, err := t.exec(ctx, pausedSince, job, j.state.PausedBy, j.state.PausedNote); err != nil {
			return err
		}
	}
	for _, n := range names {
		if old, ok := known[n]; ok {
			if err := t.takeOver(ctx, old, j, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeOver gives what stands under an old name to the job that carries it on.
func (t *tx) takeOver(ctx context.Context, old daybook.JobState, j takenJob, now time.Time) error {
	if _, err := t.standStill(ctx, old.Name); err != nil {
		return err
	}
	if _, err := t.exec(ctx, retireJob, old.Name, us(now)); err != nil {
		return err
	}
	if _, err := t.exec(ctx, setRenamed, old.Name, j.c.Job.Name, j.c.Home); err != nil {
		return err
	}
	if old.Home != j.c.Home {
		if _, err := t.exec(ctx, moveHome, old.Name, j.c.Home); err != nil {
			return err
		}
	}
	return t.hold(ctx, old.Name, j.state.Paused)
}

// hold holds what waits of a job for the reason that holds now, if any.
func (t *tx) hold(ctx context.Context, job string, paused bool) error {
	for _, statement := range []string{releaseDefined, releasePaused, holdPaused} {
		if statement == holdPaused && !paused {
			continue
		}
		if _, err := t.exec(ctx, statement, job); err != nil {
			return err
		}
	}
	return nil
}

const selectNames = `SELECT formerly FROM daybook_jobs WHERE name = $1`

// names returns the names under which what belongs to a job may stand, its own first.
func (s *Store) names(ctx context.Context, q query, job string) ([]string, error) {
	names := []string{job}
	err := q(ctx, selectNames, func(rows *sql.Rows) error {
		var formerly string
		err := rows.Scan(&formerly)
		names = append(names, splitNames(formerly)...)
		return err
	}, job)
	return names, err
}

// under is a key as it would stand under another name of its job.
func under(name string, k daybook.Key) daybook.Key {
	_, rest, _ := strings.Cut(string(k), ":")
	return daybook.Key(name + ":" + rest)
}
