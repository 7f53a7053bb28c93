package sim

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What is written down of a row when it changes, by table: the key first.
var watched = []struct {
	table, on string // on: the columns of which a change is written down; empty: all
	columns   []string
}{
	{"live", "state, reason, hold, due_us, fence, claim, asking, line", []string{"key", "state", "reason", "fence", "claim", "asking", "due_us", "line", "hold", "node", "lease_us"}},
	{"runs", "state, reason", []string{"key", "state", "reason", "job", "label", "effects", "parent", "covered_by", "serial"}},
	{"steps", "", []string{"key", "step", "state", "generation", "open", "effect", "fence", "tries", "first_us"}},
	{"letters", "", []string{"key", "id", "kind", "state", "error", "parent"}},
	{"alerts", "closed_us", []string{"key", "id", "kind", "closed_us"}},
	{"jobs", "cursor_us, revision, paused", []string{"name", "cursor_us", "revision", "paused", "first_seen_us"}},
	{"triggers", "", []string{"key", "job", "fire", "source", "outcome"}},
	{"spans", "", []string{"job", "from_us", "to_us"}},
}

// historySchema is what the simulator adds to a ledger: a table of everything that changed in it, written by the database
// itself in the transactions of the changes, and a table of the caller's own.
func historySchema() []string {
	texts := []string{
		"CREATE TABLE sim_changes (seq INTEGER PRIMARY KEY, tab TEXT NOT NULL, op TEXT NOT NULL, cells TEXT NOT NULL)",
		"CREATE TABLE sim_extended (run TEXT NOT NULL)",
	}
	for _, t := range watched {
		for _, op := range []string{"INSERT", "UPDATE", "DELETE"} {
			from, on := "new", op
			switch {
			case op == "DELETE":
				from = "old"
			case op == "UPDATE" && t.on != "":
				on = "UPDATE OF " + t.on
			}
			texts = append(texts, fmt.Sprintf("CREATE TRIGGER sim_%s_%s AFTER %s ON daybook_%s BEGIN INSERT INTO sim_changes (tab, op, cells) VALUES ('%s', '%s', %s.%s); END",
				t.table, strings.ToLower(op), on, t.table, t.table, op, from, strings.Join(t.columns, " || char(31) || "+from+".")))
		}
	}
	return texts
}

// history is the ledger as its rows say it is, and how they came to be so.
type history struct {
	w      *World
	db     *sql.DB
	read   *sql.Stmt // what changed
	next   *sql.Stmt // when a run with subjects is to be looked at
	look   time.Time // its answer
	stale  bool      // something may have changed since
	seq    int64
	live   map[string]*liveRow
	runs   map[string]*runRow
	steps  map[string]map[string]*stepRow // by run, by name
	letter map[string]*letterRow          // by id
	byHand map[string]bool                // undos that a person did himself, and dismissed
	last   map[string]*letterRow          // by run: the newest
	alerts map[string]*alertRow           // by id
	cursor map[string]int64
	paused map[string]bool
	lines  map[string]string // which run of a line is running
	fences map[string]int64  // by run: the highest one ever
	fires  map[string]bool
	spans  map[string][]span
}

type span struct{ from, to time.Time }

// accounted reports whether a window has a row, or stands in a span.
func (h *history) accounted(job string, f fire) bool {
	_, ok := h.runs[job+":"+f.label]
	return ok || slices.ContainsFunc(h.spans[job], func(s span) bool { return !f.at.Before(s.from) && !f.at.After(s.to) })
}

type liveRow struct {
	key, state, reason  string
	fence               int64
	claim, asking       string
	due                 int64
	line, hold, process string
	lease               int64
}

type runRow struct {
	key, state, reason, job, label, effects, parent, coveredBy, serial string
}

type stepRow struct {
	step, state  string
	generation   int
	open, effect bool
	fence        int64
	tries        int
	first        int64
}

type letterRow struct{ key, id, kind, state, err, parent string }

// tells is the key under which a letter is announced: subjects of one run share one.
func (l *letterRow) tells() string {
	if l.parent != "" {
		return l.parent
	}
	return l.key
}

type alertRow struct {
	key, kind string
	open      bool
}

func newHistory(t testing.TB, w *World, path string) *history {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+pragmas)
	if err != nil {
		t.Fatal(err)
	}
	read, err := db.PrepareContext(w.ctx, "SELECT seq, tab, op, cells FROM sim_changes WHERE seq > ? ORDER BY seq")
	if err != nil {
		t.Fatal(err)
	}
	next, err := db.PrepareContext(w.ctx, "SELECT CASE WHEN EXISTS (SELECT 1 FROM daybook_ends) THEN 1 ELSE COALESCE((SELECT MIN(look_us) FROM daybook_fans WHERE look_us > 0), 0) END")
	if err != nil {
		t.Fatal(err)
	}
	return &history{w: w, db: db, read: read, next: next, stale: true, live: map[string]*liveRow{}, runs: map[string]*runRow{}, steps: map[string]map[string]*stepRow{}, letter: map[string]*letterRow{}, byHand: map[string]bool{},
		last: map[string]*letterRow{}, alerts: map[string]*alertRow{}, cursor: map[string]int64{}, paused: map[string]bool{}, lines: map[string]string{},
		fences: map[string]int64{}, fires: map[string]bool{}, spans: map[string][]span{}}
}

func (h *history) close() {
	_ = h.read.Close()
	_ = h.next.Close()
	_ = h.db.Close()
}

// change is one row that changed.
type change struct {
	table, op string
	c         []string
}

func (c change) n(i int) int64 {
	n, err := strconv.ParseInt(c.c[i], 10, 64)
	if err != nil {
		panic(fmt.Sprintf("sim: cell %d of %v: %v", i, c, err))
	}
	return n
}

// observe reads what changed since the last time, and holds each change against the promises.
func (h *history) observe(during string) {
	h.stale = true
	changes := h.changes()
	cursors := make(map[string]int64)
	for _, c := range changes {
		if at, ok := h.cursor[c.c[0]]; c.table == "jobs" && ok {
			cursors[c.c[0]] = at
		}
		h.take(c, during)
	}
	for job, at := range cursors {
		h.passed(job, at)
	}
	h.together(changes, during)
}

func (h *history) changes() (list []change) {
	ctx := h.w.ctx
	rows, err := h.read.QueryContext(ctx, h.seq)
	if err != nil {
		panic(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var c change
		var cells string
		if err := rows.Scan(&h.seq, &c.table, &c.op, &cells); err != nil {
			panic(err)
		}
		c.c = strings.Split(cells, "\x1f")
		list = append(list, c)
	}
	if err := rows.Err(); err != nil {
		panic(err)
	}
	return list
}

// standing is what the loops of a process would find.
type standing struct {
	due    time.Time // of the first run that could be claimed
	leases bool
	parked bool
	looks  time.Time // when a run with subjects is to be looked at
}

func (h *history) standing() (s standing) {
	var first int64
	for _, l := range h.live {
		switch {
		case l.lease > 0:
			s.leases = true
		case l.hold != "":
			s.parked = true
		case l.state == "running":
		case l.hold == "" && (first == 0 || l.due < first):
			first = l.due
		}
	}
	if first != 0 {
		s.due = time.UnixMicro(first)
	}
	if h.w.fans {
		s.looks = h.looks()
	}
	return s
}

// looks is when a run with subjects is to be looked at, read again when anything may have changed.
func (h *history) looks() time.Time {
	if !h.stale {
		return h.look
	}
	var look int64
	if err := h.next.QueryRowContext(h.w.ctx).Scan(&look); err != nil {
		panic(err)
	}
	h.stale, h.look = false, time.Time{}
	if look != 0 {
		h.look = time.UnixMicro(look)
	}
	return h.look
}

// row is a run as a page shows it.
type row struct {
	key, job, state, reason, effects string
	letter, kind, err                string // of the newest letter
	steps                            []*stepRow
}

func (r row) live() bool {
	return r.state == "scheduled" || r.state == "running" || r.state == "retryable"
}

// waits reports whether a run is live only because the hour of a further zone is still to come.
func (h *history) waits(k string) bool {
	l := h.live[k]
	return l != nil && l.reason == "next zone" && l.due > h.w.now().UnixMicro()
}

// seen lists all runs, by key.
func (h *history) seen() []row {
	list := make([]row, 0, len(h.runs))
	for _, k := range slices.Sorted(maps.Keys(h.runs)) {
		r := h.runs[k]
		v := row{key: k, job: r.job, state: r.state, reason: r.reason, effects: r.effects}
		if l := h.live[k]; l != nil {
			v.state, v.reason = l.state, l.reason
		}
		if l := h.last[k]; l != nil {
			v.letter, v.kind, v.err = l.state, l.kind, l.err
		}
		for _, name := range slices.Sorted(maps.Keys(h.steps[k])) {
			v.steps = append(v.steps, h.steps[k][name])
		}
		list = append(list, v)
	}
	return list
}
