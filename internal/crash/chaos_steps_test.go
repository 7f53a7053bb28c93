package crash

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/internal/gateway"
)

// Of the renewals of the chaos: charges in two steps, whose cards are refused now and then, and that people undo, replay, cancel,
// reopen and dismiss while everybody is being killed. Windows are four seconds long.
const (
	renewals      = "renew-"
	renewalPeriod = 4 * time.Second
	renewalJobs   = `
  renew-probe:
    {priority: P0, schedule: every 4s, window: fire, effects: once, steps: true, overlap: allow, catchup_gap: 0, probe: [ME, ask-book], probe_undo: true,
     settles: 1500ms, retry: {backoff: [100ms, 200ms, 400ms, 800ms], jitter: 0%}, run: [ME, renew, probe]}
  renew-memory:
    {priority: P0, schedule: every 4s, window: fire, effects: once, steps: true, overlap: allow, catchup_gap: 0,
     retry: {backoff: [100ms, 200ms, 400ms, 800ms], jitter: 0%}, run: [ME, renew, memory]}
  renew-neither:
    {priority: P0, schedule: every 4s, window: fire, effects: once, steps: true, overlap: allow, catchup_gap: 0,
     retry: {backoff: [100ms], jitter: 0%}, run: [ME, renew, neither]}
`
)

// steps are those of a renewal, in their order.
var steps = []string{"first", "second"}

// renewal is the work of such a job: it charges, notes a row, and charges again.
func renewal(kind string) int {
	me, err := os.Executable()
	if err != nil {
		panic(err)
	}
	var how []string
	switch kind {
	case "probe":
		how = []string{"--probe", me + " ask-book", "--settles", "1500ms"}
	case "memory":
		how = []string{"--remembers", "24h"}
	}
	for _, s := range steps {
		args := append([]string{"effect", s, "--undo", me + " book-undo"}, how...)
		args = append(args, "--", me, "book", s)
		if code := daybookCommand(args...); code != 0 {
			return code
		}
		if s == "first" {
			if code := daybookCommand("step", "note", "--", me, "book", "note"); code != 0 {
				return code
			}
		}
	}
	return exitDone
}

func daybookCommand(args ...string) int {
	cmd := exec.Command(os.Getenv(envBinary), args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		panic(err)
	}
	return cmd.ProcessState.ExitCode()
}

// book is the command of a step of a renewal. What it sends, and that it was answered, it writes into the diary.
func book(step string) int {
	pauseBetween("0s", "100ms")
	code := exitDone
	if step != "note" {
		job, day, _ := strings.Cut(os.Getenv("DAYBOOK_KEY"), ":")
		write("sent", 0)
		code = post(os.Getenv(envGateway)+"/charges", fmt.Sprintf(`{"customer":%q,"day":%q,"amount":1500,"currency":"EUR"}`, job+"/"+step, day))
		write("told", code)
	}
	pauseBetween("0s", "100ms")
	return code
}

// bookUndo takes a charge of a renewal back.
func bookUndo() int {
	id, err := chargeOf(os.Getenv("DAYBOOK_EFFECT_KEY"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitUnclear
	}
	pauseBetween("0s", "100ms")
	write("sent", 0)
	code := post(os.Getenv(envGateway)+"/refunds", fmt.Sprintf(`{"charge":%q}`, id))
	write("told", code)
	return code
}

// askBook is the probe of a renewal, of charges and of refunds.
func askBook() int {
	if strings.Contains(os.Getenv("DAYBOOK_WIRE_KEY"), "~undo") {
		return ask(os.Getenv(envGateway) + "/refunds")
	}
	return ask(os.Getenv(envGateway) + "/charges")
}

// people act on renewals, several at once, through the library and through the command line. They look into the gateway's book
// before they say what happened, and only when nothing of the key is alive any more.
type people struct {
	*chaos
	desk *control.Control
	db   *sql.DB

	mu     sync.Mutex
	undone map[string]time.Time // when an undo was begun
	acts   map[string]int       // that were taken, by their name
	clicks atomic.Int64
}

func newPeople(c *chaos) *people {
	c.t.Helper()
	db := c.handles()
	e, err := engine.Open(c.t.Context(), db, engine.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = e.Close(); _ = db.Write.Close(); _ = db.Read.Close() })
	return &people{chaos: c, desk: e.Control(), db: db.Read, undone: map[string]time.Time{}, acts: map[string]int{}}
}

// start lets some people act until the context is over, each by choices of the seed.
func (p *people) start(ctx context.Context, seed uint64, many int) (wait func()) {
	var all sync.WaitGroup
	for n := range many {
		random := rand.New(rand.NewPCG(seed, uint64(1000+n)))
		all.Go(func() {
			for ctx.Err() == nil {
				p.pass(time.Duration(50+random.IntN(400)) * time.Millisecond)
				p.act(ctx, random)
			}
		})
	}
	return all.Wait
}

// seen is a renewal as a person sees it in a list.
type seen struct{ key, state, reason string }

// list is the newest renewals, at most so many.
func (p *people) list(ctx context.Context, most int) (all []seen) {
	rows, err := p.db.QueryContext(ctx, `SELECT r.key, CASE WHEN r.state = '' THEN l.state ELSE r.state END, CASE WHEN r.state = '' THEN l.reason ELSE r.reason END
FROM daybook_runs r LEFT JOIN daybook_live l ON l.key = r.key WHERE r.job LIKE 'renew-%' ORDER BY r.start_us DESC, r.key LIMIT $1`, most)
	if err != nil {
		return nil // the database is busy, or the test is over
	}
	defer rows.Close()
	for rows.Next() {
		var s seen
		if rows.Scan(&s.key, &s.state, &s.reason) == nil {
			all = append(all, s)
		}
	}
	if rows.Err() != nil {
		return nil
	}
	return all
}

// act does something to a renewal, as often and by as many at once as the dice say.
func (p *people) act(ctx context.Context, random *rand.Rand) {
	all := p.list(ctx, 60)
	if len(all) == 0 {
		return
	}
	s := all[random.IntN(len(all))]
	isUndo := strings.HasSuffix(s.key, "~undo")
	var does []string
	switch daybook.State(s.state) {
	case daybook.Dead:
		does = []string{"replay", "resolve", "resolve", "undo"}
		if !isUndo {
			does = append(does, "dismiss")
		}
	case daybook.Done:
		if isUndo || random.IntN(4) > 0 { // most renewals stay
			does = []string{"trigger", "replay"}
			break
		}
		does = []string{"undo"}
	case daybook.Cancelled:
		does = []string{"reopen"}
	default:
		does = []string{"trigger", "cancel", "undo", "trigger"}
	}
	do := does[random.IntN(len(does))]
	var both sync.WaitGroup
	for range 1 + random.IntN(3) { // a double click, and one more
		byHand := random.IntN(5) == 0
		if other := random.IntN(8); other == 0 { // somebody else had something else in mind
			do = []string{"undo", "replay", "cancel", "dismiss", "reopen"}[random.IntN(5)]
		}
		if do == "dismiss" && isUndo { // would say that somebody gave the money back by hand
			continue
		}
		what := do
		both.Go(func() { p.click(ctx, what, s.key, byHand && what != "resolve") })
	}
	both.Wait()
}

// click is one act, by the library or by the command line.
func (p *people) click(ctx context.Context, do, key string, byHand bool) {
	p.clicks.Add(1)
	began := time.Now()
	var err error
	started := false
	if byHand {
		err = p.byCommand(ctx, do, key)
		started = err == nil && (do == "replay" || do == "reopen")
	} else {
		started, err = p.byLibrary(ctx, do, daybook.Key(key))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		return
	}
	p.acts[do]++
	switch at, undone := p.undone[key]; {
	case do == "undo" && undone:
		p.t.Errorf("%s: a second undo was begun", key)
	case do == "undo":
		p.undone[key] = time.Now()
	case started && undone && began.After(at):
		p.t.Errorf("%s: %s went on after its undo had begun", key, do)
	}
}

// byLibrary reports whether work goes on by the act. A refusal is an error.
func (p *people) byLibrary(ctx context.Context, do string, key daybook.Key) (started bool, err error) {
	const why = "chaos"
	switch do {
	case "undo":
		_, err = p.desk.Undo(ctx, ops, key, why)
	case "replay":
		var answers []control.Answer
		if answers, err = p.desk.Replay(ctx, ops, []daybook.Key{key}, why); err == nil {
			started, err = answers[0].Outcome == daybook.Started, answers[0].Err()
		}
	case "trigger":
		var a control.Answer
		a, err = p.desk.Trigger(ctx, ops, control.Request{Job: key.Job(), Window: key.Parts().Window, Subject: key.Parts().Subject})
		started = a.Outcome == daybook.Started
	case "cancel":
		_, err = p.desk.Cancel(ctx, ops, key, why)
	case "reopen":
		_, err = p.desk.Reopen(ctx, ops, key, why)
		started = err == nil
	case "dismiss":
		_, err = p.desk.Dismiss(ctx, ops, key, why)
	case "resolve":
		err = p.resolve(ctx, key)
	}
	return started, err
}

// byCommand does the same in a process of its own.
func (p *people) byCommand(ctx context.Context, do, key string) error {
	args := []string{"run", do, key, "--reason", "chaos"}
	switch do {
	case "trigger":
		args = []string{"job", "trigger", daybook.Key(key).Job(), "--window", daybook.Key(key).Parts().Window}
		if subject := daybook.Key(key).Parts().Subject; subject != "" {
			args = append(args, "--subject", subject)
		}
	case "replay":
		args = []string{"dead", "replay", key, "--reason", "chaos", "--yes"}
	case "dismiss":
		args[0] = "dead"
	case "undo":
		args = append(args, "--confirm="+key)
	}
	cmd := exec.CommandContext(ctx, binary, append(args, "-c", p.config)...)
	cmd.Env = p.env()
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 2 && ctx.Err() == nil {
		p.t.Errorf("daybook %s: %s", strings.Join(args, " "), out)
	}
	return err
}

// resolve says what happened to a step nobody knows of: what the gateway's book says, once that can change no more.
func (p *people) resolve(ctx context.Context, key daybook.Key) error {
	r, err := p.desk.Run(ctx, key)
	if err != nil {
		return err
	}
	if r.State != daybook.Dead || r.Letter == nil || r.Letter.Kind != daybook.LetterUnknown || time.Since(r.Letter.OpenedAt) < settles || p.works(string(key)) {
		return daybook.Conflict("not now")
	}
	lines, err := gateway.ReadBook(p.book)
	if err != nil {
		return err
	}
	for _, e := range r.OpenSteps() {
		as := daybook.AsNotDone
		for _, l := range lines {
			if (l.Kind == gateway.KindRefund || l.Kind == gateway.KindCharge && l.Status == gateway.Charged) && stem(l.Key) == stem(e.WireKey()) {
				as = daybook.AsDone
			}
		}
		if _, err := p.desk.Resolve(ctx, ops, key, control.Word{Step: e.Step, As: as, Attempt: r.Attempts}, "looked into the book"); err != nil {
			return err
		}
	}
	return nil
}

// works is working for somebody who may not end the test.
func (p *people) works(key string) bool {
	if strings.HasPrefix(key, fan) {
		return p.calls(strings.TrimSuffix(key, "~undo"))
	}
	for _, pid := range p.workers() {
		if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err == nil && strings.Contains("\x00"+string(env), "\x00DAYBOOK_KEY="+strings.TrimSuffix(key, "~undo")+"\x00") {
			return true
		}
	}
	return false
}

// calls is works for a key of the application, which does many in one process.
func (p *people) calls(key string) bool {
	all, err := readDiary(p.diary)
	if err != nil {
		return true
	}
	open := map[string]int{}
	for _, e := range all {
		switch {
		case e.Key != key:
		case e.What == "sent":
			open[e.Wire] = e.Pid
		case e.What == "told" && open[e.Wire] == e.Pid:
			delete(open, e.Wire)
		}
	}
	for _, pid := range open {
		if state, _ := stat(pid); state != 0 && state != 'Z' {
			return true
		}
	}
	return false
}

// workers are the processes that work for runs of this world.
func (w *world) workers() (list []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	ours := "\x00" + envDiary + "=" + w.diary + "\x00"
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && strings.Contains("\x00"+string(env), ours) && strings.Contains("\x00"+string(env), "\x00DAYBOOK_KEY=") {
			list = append(list, pid)
		}
	}
	return list
}

// card lets the card of the second charge work, or not.
func (w *world) card(t testing.TB, customer string, ok bool) {
	answer, err := client.Post(w.gateway+"/cards", "application/json", strings.NewReader(fmt.Sprintf(`{"customer":%q,"ok":%t}`, customer, ok)))
	if err != nil {
		t.Error(err)
		return
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		t.Errorf("card: %s", answer.Status)
	}
}

// tidy is what people do at the end: every letter is decided, and whatever was taken back out of the work is let in again. It
// returns how many renewals are not at their end yet.
func (p *people) tidy() (left int) {
	for _, s := range p.list(p.t.Context(), 1<<20) {
		switch daybook.State(s.state) {
		case daybook.Done:
			if s.reason == string(daybook.ReasonUndoing) {
				left++
			}
			continue
		case daybook.Cancelled:
			p.click(p.t.Context(), "reopen", s.key, false)
		case daybook.Dead:
			switch daybook.Reason(s.reason) {
			case daybook.ReasonCompensated, daybook.ReasonUndone:
				continue
			case daybook.ReasonUndoing:
			default:
				p.click(p.t.Context(), "reopen", s.key, false) // one that was dismissed
				p.click(p.t.Context(), "resolve", s.key, false)
				p.click(p.t.Context(), "replay", s.key, false)
			}
		}
		left++
	}
	return left
}
