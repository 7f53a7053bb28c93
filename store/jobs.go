package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

const jobColumns = `SELECT name, home, revision, since_us, definition, cursor_us, next_us, next_fire, first_seen_us, scanned_us, paused, paused_us, paused_by, paused_note,
  fault, fault_us, retired_us, formerly, renamed_to FROM daybook_jobs `

const selectJobs = jobColumns + `ORDER BY name`

const selectJob = jobColumns + `WHERE name = $1`

func scanJob(rows *sql.Rows) (daybook.JobState, error) {
	var j daybook.JobState
	var since, cursor, next, seen, scanned, paused, pausedAt, fault, retired int64
	var definition, formerly string
	err := rows.Scan(&j.Name, &j.Home, &j.Revision, &since, &definition, &cursor, &next, &j.NextFire, &seen, &scanned, &paused, &pausedAt, &j.PausedBy, &j.PausedNote,
		&j.Fault, &fault, &retired, &formerly, &j.RenamedTo)
	j.Definition, j.Formerly = []byte(definition), splitNames(formerly)
	j.Since, j.Cursor, j.Next, j.FirstSeen, j.ScannedAt = at(since), at(cursor), at(next), at(seen), at(scanned)
	j.Paused, j.PausedAt, j.FaultAt, j.RetiredAt = paused != 0, at(pausedAt), at(fault), at(retired)
	return j, err
}

// JobStates implements daybook.Planner and daybook.Reader.
func (s *Store) JobStates(ctx context.Context) ([]daybook.JobState, error) {
	return s.jobStates(ctx, s.reader("read jobs"))
}

// JobState implements daybook.Reader.
func (s *Store) JobState(ctx context.Context, job string) (st daybook.JobState, known bool, err error) {
	err = s.read(ctx, "read job "+job, selectJob, func(rows *sql.Rows) (err error) {
		known = true
		st, err = scanJob(rows)
		return err
	}, job)
	return st, known, err
}

func (s *Store) jobStates(ctx context.Context, q query) ([]daybook.JobState, error) {
	var jobs []daybook.JobState
	err := q(ctx, selectJobs, func(rows *sql.Rows) error {
		j, err := scanJob(rows)
		jobs = append(jobs, j)
		return err
	})
	return jobs, err
}

const insertJobs = `WITH v (name, home, revision, since_us, definition, cursor_us, first_seen_us, paused, paused_us) AS (/*rows t t b b t b b b b*/)
INSERT INTO daybook_jobs (name, home, revision, since_us, definition, cursor_us, first_seen_us, paused, paused_us)
SELECT * FROM v WHERE TRUE ON CONFLICT (name) DO NOTHING RETURNING name`

const updateJob = `UPDATE daybook_jobs SET home = $2, revision = revision + 1, since_us = $3, definition = $4, cursor_us = $5, first_seen_us = $9, next_us = 0, next_fire = '', retired_us = 0,
  paused = $6, paused_us = $7, fault = '', fault_us = 0, renamed_to = '' WHERE name = $1 AND revision = $8`

const insertRevisions = `WITH v (job, revision, since_us, definition) AS (/*rows t b b t*/)
INSERT INTO daybook_revisions (job, revision, since_us, definition) SELECT * FROM v WHERE TRUE ON CONFLICT DO NOTHING`

const retireJob = `UPDATE daybook_jobs SET retired_us = $2 WHERE name = $1 AND retired_us = 0`

const holdUndefined = `UPDATE daybook_live SET hold = 'no definition' WHERE job = $1 AND hold IN ('', 'waiting for serial key')`

// Of a name that another job carries on, that job decides.
const holdRetired = holdUndefined + ` AND EXISTS (SELECT 1 FROM daybook_jobs j
  JOIN daybook_jobs h ON h.name = CASE WHEN j.renamed_to = '' THEN j.name ELSE j.renamed_to END WHERE j.name = daybook_live.job AND h.retired_us > 0)`

// moveHome gives what is live to the program that does the job from now on. What is at rest moves when it is woken.
const moveHome = `UPDATE daybook_live SET home = $2 WHERE job = $1`

const releaseDefined = `UPDATE daybook_live SET hold = '' WHERE job = $1 AND hold = 'no definition'`

// TakeRevisions implements daybook.Planner.
func (s *Store) TakeRevisions(ctx context.Context, changes []daybook.Revision, retireOthers bool, now time.Time) ([]daybook.JobState, error) {
	// One order for all: two programs that start at once would wait for each other.
	changes = slices.SortedFunc(slices.Values(changes), func(a, b daybook.Revision) int { return strings.Compare(a.Job.Name, b.Job.Name) })
	var after []daybook.JobState
	err := s.write(ctx, "take revisions", func(ctx context.Context, t *tx) error {
		states, err := s.jobStates(ctx, t.query)
		if err != nil {
			return err
		}
		r := revising{now: now, known: make(map[string]daybook.JobState, len(states))}
		for _, j := range states {
			r.known[j.Name] = j
		}
		named := make(map[string]bool, len(changes))
		for _, c := range changes {
			named[c.Job.Name] = named[c.Job.Name] || !c.Gone
		}
		leaves := func(st daybook.JobState) bool { return retireOthers && st.Home == "" && !named[st.Name] }
		if err := checkCarried(r.known, changes, leaves); err != nil {
			return err
		}
		r.formerly = carried(r.known, changes)
		for _, c := range changes {
			if err := t.revise(ctx, &r, c); err != nil {
				return err
			}
		}
		if err := t.makeCurrent(ctx, &r); err != nil {
			return err
		}
		for _, j := range states {
			if leaves(j) && j.RetiredAt.IsZero() && !r.goesOn(j.Name) {
				if err := t.retire(ctx, j, now); err != nil {
					return err
				}
			}
		}
		after, err = s.jobStates(ctx, t.query)
		return err
	})
	return after, err
}

// revising is a set of definitions on its way to be the current one.
type revising struct {
	now             time.Time
	known           map[string]daybook.JobState
	formerly        map[string][]string // see carried
	jobs, revisions [][]any             // to be written
	taken           []takenJob
}

// goesOn reports whether a job that is taken carries a name on.
func (r *revising) goesOn(name string) bool {
	return slices.ContainsFunc(r.taken, func(t takenJob) bool { return slices.Contains(r.formerly[t.c.Job.Name], name) })
}

// take notes a definition that is made current.
func (r *revising) take(c daybook.Revision, number int64, definition []byte, st daybook.JobState) {
	r.taken = append(r.taken, takenJob{c, number, st})
	r.revisions = append(r.revisions, []any{c.Job.Name, number, us(r.now), string(definition)})
}

// revise makes one change. One that changes nothing is none.
func (t *tx) revise(ctx context.Context, r *revising, c daybook.Revision) error {
	old, ok := r.known[c.Job.Name]
	if c.Gone {
		if ok && old.Home == c.Home && old.RetiredAt.IsZero() {
			return t.retire(ctx, old, r.now)
		}
		return nil
	}
	definition := c.Job.Canonical()
	switch {
	case ok && old.RetiredAt.IsZero() && old.Home != c.Home && old.Home != daybook.HomeOnce:
		return elsewhere(old)
	case ok && old.RetiredAt.IsZero() && old.Home == c.Home && string(old.Definition) == string(definition):
		return nil
	case ok:
		paused, err := t.changeJob(ctx, old, c, definition, r.now)
		r.take(c, old.Revision+1, definition, daybook.JobState{Paused: paused})
		return err
	}
	first, err := firstSight(c, r.known[c.Job.Formerly], r.now)
	r.jobs = append(r.jobs, []any{c.Job.Name, c.Home, int64(1), us(r.now), string(definition), us(first.Cursor), us(first.FirstSeen), bit(first.Paused), us(first.PausedAt)})
	r.take(c, 1, definition, first)
	return err
}

// makeCurrent writes new jobs and the numbers of all that are taken, and what comes of them for what stands already.
func (t *tx) makeCurrent(ctx context.Context, r *revising) error {
	made := 0
	if err := t.bulk(ctx, insertJobs, r.jobs, func(rows *sql.Rows) error {
		made++
		var name string
		return rows.Scan(&name)
	}); err != nil {
		return err
	}
	if made != len(r.jobs) {
		return errMet
	}
	if err := t.bulk(ctx, insertRevisions, r.revisions, nil); err != nil {
		return err
	}
	for _, j := range r.taken {
		names := r.formerly[j.c.Job.Name]
		if err := t.carryOn(ctx, j, r.known, names, r.now); err != nil {
			return err
		}
		if err := t.leaveOut(ctx, j.c, j.revision, names, r.now); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere refuses a job that another program does: two that plan and run one name would do its windows by two meanings.
func elsewhere(j daybook.JobState) error {
	if j.Home == "" {
		return daybook.Conflict("job %s is defined by the file of a daybook serve", j.Name).
			WithHint("use another name, or take it out of that file first: it is retired when serve starts again")
	}
	return daybook.Conflict("job %s is handled by the application %s", j.Name, j.Home).
		WithHint("use another name, or let that application retire it first; an application that was renamed goes on under its old name")
}

func (t *tx) retire(ctx context.Context, job daybook.JobState, now time.Time) error {
	for _, n := range job.Names() {
		if _, err := t.standStill(ctx, n); err != nil {
			return err
		}
		if _, err := t.exec(ctx, holdUndefined, n); err != nil {
			return err
		}
	}
	_, err := t.exec(ctx, retireJob, job.Name, us(now))
	return err
}

// takenJob is a definition that was made current, and how its job stands.
type takenJob struct {
	c        daybook.Revision
	revision int64
	state    daybook.JobState
}

// firstSight is how a job stands that the ledger did not know. It starts at now, and owes nothing of the past; one that was
// renamed goes on where it was.
func firstSight(c daybook.Revision, old daybook.JobState, now time.Time) (daybook.JobState, error) {
	st := daybook.JobState{Cursor: now, FirstSeen: now, Paused: c.Job.Paused}
	if st.Paused {
		st.PausedAt = now
	}
	if old.Name == "" || !old.RetiredAt.IsZero() {
		return st, nil
	}
	if old.Home != daybook.HomeOnce || c.Home == daybook.HomeOnce { // nothing planned those until now
		st.Cursor, st.FirstSeen = old.Cursor, old.FirstSeen
	}
	before, err := daybook.JobFromCanonical(old.Definition)
	if err == nil && before.Paused == c.Job.Paused { // of a change here and a pause by hand the later one wins
		st.Paused, st.PausedAt, st.PausedBy, st.PausedNote = old.Paused, old.PausedAt, old.PausedBy, old.PausedNote
	}
	return st, err
}

// changeJob makes another definition current. A job that comes back after it was retired starts at now, like a new one:
// nobody owed what lay between.
func (t *tx) changeJob(ctx context.Context, old daybook.JobState, c daybook.Revision, definition []byte, now time.Time) (paused bool, err error) {
	cursor, seen := old.Cursor, old.FirstSeen
	if !old.RetiredAt.IsZero() || old.Home == daybook.HomeOnce && c.Home != old.Home { // nothing planned it until now
		cursor, seen = now, now
	}
	paused, pausedAt := old.Paused, old.PausedAt
	before, err := daybook.JobFromCanonical(old.Definition)
	if err != nil {
		return false, err
	}
	if before.Paused != c.Job.Paused { // of a change here and a pause by hand the later one wins
		paused, pausedAt = c.Job.Paused, now
	}
	if _, err := t.standStill(ctx, c.Job.Name); err != nil {
		return false, err
	}
	n, err := t.exec(ctx, updateJob, c.Job.Name, c.Home, us(now), string(definition), us(cursor), bit(paused), us(pausedAt), old.Revision, us(seen))
	if err != nil {
		return false, err
	}
	if n == 0 {
		return false, errMet
	}
	if old.Fault != "" {
		if _, err := t.exec(ctx, closeFault, c.Job.Name, us(now)); err != nil {
			return false, err
		}
	}
	if old.Home != c.Home {
		if _, err := t.exec(ctx, moveHome, c.Job.Name, c.Home); err != nil {
			return false, err
		}
	}
	return paused, t.hold(ctx, c.Job.Name, paused)
}

// leaveOut writes the windows that a change of schedule leaves out. Those that stand under an earlier name are known.
func (t *tx) leaveOut(ctx context.Context, c daybook.Revision, revision int64, formerly []string, now time.Time) error {
	if len(c.Left) == 0 {
		return nil
	}
	var earlier []string
	for _, w := range c.Left {
		for _, n := range formerly {
			earlier = append(earlier, string(daybook.KeyParts{Job: n, Window: w.Label}.Key()))
		}
	}
	known := make(map[string]bool)
	if err := t.existing(ctx, earlier, func(k daybook.Key, _ daybook.Standing) { known[k.Parts().Window] = true }); err != nil {
		return err
	}
	var runs []*daybook.Run
	for _, w := range c.Left {
		if known[w.Label] {
			continue
		}
		r := daybook.NewRun(c.Job, revision, w, 1, "", now)
		r.State, r.Reason, r.Home = daybook.Skipped, daybook.ReasonScheduleChanged, c.Home
		r.Cover = daybook.Bounds{Start: w.Start, End: w.End}
		runs = append(runs, r)
	}
	fresh, err := t.insertRuns(ctx, runs)
	if err != nil || c.Job.Priority != daybook.P0 {
		return err
	}
	why := "the change of the schedule left it out"
	if c.Job.Zone == daybook.ZoneOfSubject {
		why = "it had begun in the first time zones when this definition came"
	}
	for _, r := range runs {
		if !fresh[r.Key] {
			continue
		}
		if err := t.insertAlerts(ctx, []*daybook.Alert{daybook.NewAlert(daybook.AlertJobLate, r.Key, r.Job, r.Priority,
			fmt.Sprintf("window %s skipped: %s", r.Window.Label, why), "", now)}); err != nil {
			return err
		}
	}
	return nil
}

const selectRevisions = `SELECT revision, since_us, definition FROM daybook_revisions WHERE job = $1 ORDER BY revision`

// Definitions implements daybook.Planner.
func (s *Store) Definitions(ctx context.Context, job string, from time.Time) ([]daybook.JobState, error) {
	names, err := s.names(ctx, s.reader("read the names of "+job), job)
	if err != nil {
		return nil, err
	}
	var all []daybook.JobState
	for _, n := range slices.Backward(names) { // the oldest name first: it counted before the others
		if err := s.read(ctx, "read the revisions of "+n, selectRevisions, func(rows *sql.Rows) error {
			j := daybook.JobState{Name: n}
			var since int64
			var definition string
			err := rows.Scan(&j.Revision, &since, &definition)
			j.Since, j.Definition = at(since), []byte(definition)
			all = append(all, j)
			return err
		}, n); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b daybook.JobState) int { return a.Since.Compare(b.Since) })
	var list []daybook.JobState
	for _, j := range all {
		if len(list) > 0 && !j.Since.After(from) {
			list = list[:0] // the one before ended before `from`
		}
		list = append(list, j)
	}
	return list, nil
}

const setScanned = `UPDATE daybook_jobs SET scanned_us = $2 WHERE name /*in $1*/`

// Scanned implements daybook.Planner.
func (s *Store) Scanned(ctx context.Context, jobs []string, now time.Time) error {
	return s.write(ctx, "record scans", func(ctx context.Context, t *tx) error {
		list, err := t.s.d.list(slices.Sorted(slices.Values(jobs)))
		if err == nil {
			_, err = t.exec(ctx, setScanned, list, us(now))
		}
		return err
	})
}

const setFault = `UPDATE daybook_jobs SET fault = $2, fault_us = $3 WHERE name = $1 AND fault <> $2`

const closeFault = `UPDATE daybook_alerts SET closed_us = $2 WHERE kind = 'schedule_fault' AND job = $1 AND closed_us = 0`

// Fault implements daybook.Planner.
func (s *Store) Fault(ctx context.Context, job string, p daybook.Priority, text string, now time.Time) error {
	return s.write(ctx, "record the fault of "+job, func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, setFault, job, clean(text, daybook.MaxErrorBytes), us(now))
		if err != nil || n == 0 {
			return err
		}
		if text == "" {
			_, err := t.exec(ctx, closeFault, job, us(now))
			return err
		}
		return t.insertAlerts(ctx, []*daybook.Alert{daybook.NewAlert(daybook.AlertScheduleFault, "", job, p, text, "", now)})
	})
}

// Alert writes an alert that no transition brings.
func (s *Store) Alert(ctx context.Context, a *daybook.Alert) error {
	return s.write(ctx, "write an alert", func(ctx context.Context, t *tx) error {
		return t.insertAlerts(ctx, []*daybook.Alert{a})
	})
}

// Note writes an activity that no transition brings.
func (s *Store) Note(ctx context.Context, a daybook.Activity) error {
	return s.provedWrite(ctx, "note "+a.Action, s.acted(&a), func(ctx context.Context, t *tx) error { return t.insertActivity(ctx, &a) })
}

// Ensure implements daybook.Desk.
func (s *Store) Ensure(ctx context.Context, j *daybook.Job, home string, now time.Time) (daybook.JobState, error) {
	states, err := s.TakeRevisions(ctx, []daybook.Revision{{Job: j, Home: home}}, false, now)
	if err != nil {
		return daybook.JobState{}, err
	}
	for _, st := range states {
		if st.Name == j.Name {
			return st, nil
		}
	}
	return daybook.JobState{}, daybook.NotFound("the ledger knows no job %s", j.Name)
}

const askToEnd = `UPDATE daybook_live SET cancelled_by = $3 WHERE key = $1 AND fence = $2 AND state = 'running'`

// CancelRunning implements daybook.Desk.
func (s *Store) CancelRunning(ctx context.Context, k daybook.Key, fence int64, act daybook.Activity) error {
	return s.provedWrite(ctx, "cancel "+string(k), s.acted(&act), func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, askToEnd, string(k), fence, clean(act.Actor, daybook.MaxActorBytes))
		if err != nil {
			return err
		}
		if n == 0 {
			return daybook.New(daybook.CodeStale, "%s is not running any more", k)
		}
		if _, err := t.exec(ctx, lookSoon, string(k), us(act.At)); err != nil {
			return err
		}
		return t.insertActivity(ctx, &act)
	})
}

const selectHighestN = `SELECT key FROM daybook_runs WHERE key >= $1 AND key < $2`

// HighestN implements daybook.Desk.
func (s *Store) HighestN(ctx context.Context, job, window, subject string) (int, error) {
	names, err := s.names(ctx, s.reader("read the names of "+job), job)
	if err != nil {
		return 0, err
	}
	highest := 0
	for _, n := range names {
		of, err := s.highestOf(ctx, n, window, subject)
		if err != nil {
			return 0, err
		}
		highest = max(highest, of)
	}
	return highest, nil
}

func (s *Store) highestOf(ctx context.Context, job, window, subject string) (int, error) {
	highest := 0
	base := string(daybook.KeyParts{Job: job, Window: window}.Key())
	add := func(from, to string) error {
		return s.read(ctx, "look for further effects of "+base, selectHighestN, func(rows *sql.Rows) error {
			var k string
			if err := rows.Scan(&k); err != nil {
				return err
			}
			if p := daybook.Key(k).Parts(); p.Window == window && p.Subject == subject {
				highest = max(highest, p.N)
			}
			return nil
		}, from, to)
	}
	exact := string(daybook.KeyParts{Job: job, Window: window, Subject: subject}.Key())
	if err := add(exact, exact+" "); err != nil {
		return 0, err
	}
	return highest, add(base+"~", base+"~~")
}
