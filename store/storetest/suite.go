package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/faultstore"
)

// suite lists the topics, one a file.
var suite = []topic{
	{"runs", runCases},
	{"claim", claimCases},
	{"lease", leaseCases},
	{"serial", serialCases},
	{"freezes", freezeCases},
	{"apply", applyCases},
	{"steps", stepCases},
	{"letters", letterCases},
	{"subjects", fanoutCases},
	{"ended", endedCases},
	{"trigger", triggerCases},
	{"plan", planCases},
	{"jobs", jobCases},
	{"renames", renameCases},
	{"prune", pruneCases},
	{"keeper", keeperCases},
	{"lapses", lapseCases},
	{"migrate", migrateCases},
	{"alerts", alertCases},
	{"take", takeCases},
	{"tokens", tokenCases},
	{"busy", busyCases},
	{"drills", drillCases},
	{"faults", faultCases},
	{"cut", cutCases},
	{"standing", standingCases},
	{"charged", chargedCases},
}

type topic struct {
	name  string
	cases []example
}

// example is one case: a sentence, and the test that it holds.
type example struct {
	says string
	test func(*kit)
}

// patience guards a case that waits for something: a test that hangs ends here, with its name.
const patience = 2 * time.Minute

// Run runs the suite against a kind of database: every case on a ledger of its own.
// With names, only those topics.
func Run(t *testing.T, kind func(testing.TB) Database, names ...string) {
	for _, topic := range suite {
		if len(names) > 0 && !slices.Contains(names, topic.name) {
			continue
		}
		t.Run(topic.name, func(t *testing.T) {
			for _, c := range topic.cases {
				t.Run(c.says, func(t *testing.T) { c.test(newKit(t, kind)) })
			}
		})
	}
}

// kit is what a case works with.
type kit struct {
	*testing.T
	ctx  context.Context
	kind func(testing.TB) Database
	db   Database
	s    *store.Store
	raw  *sql.DB // to look at the tables behind the ledger's back
	now  time.Time
}

func newKit(t *testing.T, kind func(testing.TB) Database) *kit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	d := kind(t)
	db := d.Open(t)
	return &kit{T: t, ctx: ctx, kind: kind, db: d, s: ledgerOn(t, d.Name, db), raw: db.Read, now: Birth}
}

// apart runs a part of a case on a ledger of its own, which ends with it.
func (k *kit) apart(name string, part func(k *kit)) {
	k.Run(name, func(t *testing.T) { part(newKit(t, k.kind)) })
}

// faulty opens the kit's ledger a second time, with faults in between.
func (k *kit) faulty(f *faultstore.Faults) *store.Store {
	k.Helper()
	return ledgerOn(k, k.db.Name, k.db.Faulty(k, f))
}

// ok ends the case on an error.
func (k *kit) ok(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

// code fails the case unless err has a code.
func (k *kit) code(err error, want daybook.Code) {
	k.Helper()
	if got := daybook.CodeOf(err); got != want {
		k.Fatalf("error with code %q, want %q: %v", got, want, err)
	}
}

// equal fails the case unless got is want.
func equal[T comparable](k *kit, what string, got, want T) {
	k.Helper()
	if got != want {
		k.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// number returns the one number that a query answers.
func (k *kit) number(query string, args ...any) int64 {
	k.Helper()
	var n sql.NullInt64
	k.ok(k.raw.QueryRowContext(k.ctx, fmt.Sprintf(query, args...)).Scan(&n))
	return n.Int64
}

var tables = []string{"accepted", "activity", "alerts", "attempts", "calls", "drills", "ends", "fans", "freezes", "holds", "jobs", "lapses", "ledger", "letters", "live", "locks", "mutes", "nodes", "outputs", "revisions", "runs", "sends", "spans", "steps", "tokens", "triggers"}

// dump is everything that the ledger holds, as text.
func (k *kit) dump() string {
	k.Helper()
	var b strings.Builder
	for _, table := range tables {
		rows, err := k.raw.QueryContext(k.ctx, "SELECT * FROM daybook_"+table)
		k.ok(err)
		columns, err := rows.Columns()
		k.ok(err)
		var lines []string
		for rows.Next() {
			values, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			k.ok(rows.Scan(into...))
			parts := make([]string, len(columns))
			for i, v := range values {
				parts[i] = fmt.Sprintf("%s=%v", columns[i], v)
			}
			sort.Strings(parts)
			lines = append(lines, strings.Join(parts, " "))
		}
		k.ok(rows.Err())
		k.ok(rows.Close())
		slices.Sort(lines)
		fmt.Fprintf(&b, "%s\n%s\n", table, strings.Join(lines, "\n"))
	}
	return b.String()
}

// claim asks for work, in the live lane and for any serve unless change says otherwise.
func (k *kit) claim(limit int, change ...func(*daybook.Claim)) []*daybook.Run {
	k.Helper()
	c := daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: limit, Lease: k.now.Add(30 * time.Second), NewID: NewID}
	for _, f := range change {
		f(&c)
	}
	runs, err := k.s.Claim(k.ctx, c, k.now)
	k.ok(err)
	return runs
}

// one claims exactly one run.
func (k *kit) one() *daybook.Run {
	k.Helper()
	runs := k.claim(10)
	if len(runs) != 1 {
		k.Fatalf("claimed %d runs, want 1: %v", len(runs), keys(runs))
	}
	return runs[0]
}

// begin marks the beginning of a claimed run.
func (k *kit) begin(r *daybook.Run, j *daybook.Job) {
	k.Helper()
	k.ok(begin(k.ctx, k.s, r, j, k.now))
}

// begin marks the beginning of a claimed run as the executor does.
func begin(ctx context.Context, s *store.Store, r *daybook.Run, j *daybook.Job, now time.Time) error {
	var e *daybook.StepRecord
	if r.OneEffect() {
		mark := r.Begin
		marked, ok := mark(j.Policy(), now)
		if !ok {
			return daybook.Conflict("%s may not begin", r.Key)
		}
		e = marked
	}
	mark := s.Begin
	return mark(ctx, r, e, now)
}

// run adds a window of a job, due now.
func (k *kit) run(j *daybook.Job, date string) *daybook.Run {
	k.Helper()
	return Add(k.ctx, k, k.s, j, date, k.now)
}

// end applies what follows an outcome and returns the run as it stands then.
func (k *kit) end(r *daybook.Run, j *daybook.Job, o daybook.Outcome) *daybook.Run {
	k.Helper()
	Apply(k.ctx, k, k.s, r.Next(o, j.Policy(), k.now))
	return k.find(r.Key)
}

// try claims the run that comes first, begins it and ends it.
func (k *kit) try(j *daybook.Job, o daybook.Outcome) *daybook.Run {
	k.Helper()
	runs := k.claim(1)
	if len(runs) == 0 {
		k.Fatal("there is nothing to claim")
	}
	k.begin(runs[0], j)
	return k.end(runs[0], j, o)
}

func (k *kit) find(key daybook.Key) *daybook.Run {
	k.Helper()
	return Find(k.ctx, k, k.s, key)
}

// stale applies a transition that must find that the run moved on.
func (k *kit) stale(m daybook.Transition) {
	k.Helper()
	before := k.dump()
	applied, err := k.s.Apply(k.ctx, []daybook.Transition{m})
	k.ok(err)
	if !applied[0].Stale {
		k.Errorf("%s: %s → %s was written, want stale", m.Key, m.From, m.To)
	}
	if after := k.dump(); after != before {
		k.Errorf("a stale transition left\n%s", difference(before, after))
	}
}

// ask triggers a key.
func (k *kit) ask(a daybook.Ask, template *daybook.Run) (daybook.Reply, *daybook.Run) {
	k.Helper()
	reply, r, err := k.s.Trigger(k.ctx, a, template, k.now)
	k.ok(err)
	return reply, r
}

// template is the run to be made for a window of a job, due now.
func (k *kit) template(j *daybook.Job, date string) *daybook.Run {
	r := daybook.NewRun(j, 1, Day(date), 1, "", k.now)
	r.Due, r.NotBefore, r.Cover = k.now, k.now, daybook.Bounds{Start: r.Window.Start, End: r.Window.End}
	return r
}

// know makes jobs known.
func (k *kit) know(jobs ...*daybook.Job) {
	k.Helper()
	var changes []daybook.Revision
	for _, j := range jobs {
		changes = append(changes, daybook.Revision{Job: j})
	}
	_, err := k.s.TakeRevisions(k.ctx, changes, false, k.now)
	k.ok(err)
}

func (k *kit) act(action string) daybook.Activity {
	return daybook.Activity{At: k.now, Actor: "ops", Action: action, Note: "because"}
}

func keys(runs []*daybook.Run) []daybook.Key {
	list := make([]daybook.Key, len(runs))
	for i, r := range runs {
		list[i] = r.Key
	}
	return list
}

// short reports whether go test -short was asked for.
func short() bool { return testing.Short() }

// until waits until a query counts something.
func (k *kit) until(db *sql.DB, query string) {
	k.Helper()
	for {
		var n int
		k.ok(db.QueryRowContext(k.ctx, query).Scan(&n))
		if n > 0 {
			return
		}
	}
}
