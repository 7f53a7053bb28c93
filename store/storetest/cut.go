package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store/faultstore"
)

// stateError is an error as drivers of PostgreSQL give it.
type stateError string

func (e stateError) Error() string    { return "SQLSTATE " + string(e) }
func (e stateError) SQLState() string { return string(e) }

var madeID = regexp.MustCompile(`id-\d{12}`)

// masked is a dump without the ids that are made anew each time.
func (k *kit) masked() string {
	lines := strings.Split(madeID.ReplaceAllString(k.dump(), "id"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// clean returns what a write leaves when nothing goes wrong.
func (w breakable) clean(k *kit) (want string) {
	k.apart("in peace", func(k *kit) {
		do := w.prepare(k)
		k.ok(do(k.ctx, k.s))
		want = k.masked()
	})
	return want
}

func sameKeys(a, b []*daybook.Run) bool {
	x, y := keys(a), keys(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// onlyPostgres ends a case of connections that can be cut.
func (k *kit) onlyPostgres() bool { return k.db.Name == "postgres" }

var cutCases = []example{
	{"a connection that is cut at any call is replaced: the write takes place once, and nobody hears of it", func(k *kit) {
		if !k.onlyPostgres() {
			return
		}
		for i, w := range breakables {
			want := w.clean(k)
			failed := 1
			for n := 1 + i%3; failed > 0 && !(short() && n > 3); n += 3 { // the next kind of write is cut at the next calls
				k.apart(fmt.Sprintf("%s, call %d", w.name, n), func(k *kit) {
					f := newFaults(1)
					s := k.faulty(f)
					do := w.prepare(k)
					f.Reset()
					f.Add(faultstore.Rule{Nth: n, Err: io.ErrUnexpectedEOF})
					k.ok(do(k.ctx, s))
					if failed = f.Failed(); failed == 0 {
						return
					}
					if got := k.masked(); got != want {
						k.Errorf("it left\n%s", difference(want, got))
					}
				})
			}
		}
	}},
	{"a commit whose answer is lost is looked up: the write takes place once, and nobody hears of it", func(k *kit) {
		if !k.onlyPostgres() {
			return
		}
		for _, w := range breakables {
			want := w.clean(k)
			for _, lost := range []error{io.ErrUnexpectedEOF, stateError("57P01")} {
				k.apart(w.name+", "+lost.Error(), func(k *kit) {
					f := newFaults(1)
					s := k.faulty(f)
					do := w.prepare(k)
					f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1, After: true, Err: lost})
					k.ok(do(k.ctx, s))
					equal(k, "failed", f.Failed(), 1)
					if got := k.masked(); got != want {
						k.Errorf("it left\n%s", difference(want, got))
					}
				})
			}
		}
	}},
	{"a lost answer changes no answer: what the commit found out is what is answered", func(k *kit) {
		if !k.onlyPostgres() {
			return
		}
		f := newFaults(1)
		s := k.faulty(f)
		lose := func() {
			f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1, After: true, Err: io.ErrUnexpectedEOF})
		}
		j := Job("renew", Once)
		k.know(j)
		r := k.template(j, "2026-03-01")
		lose()
		reply, run, err := s.Trigger(k.ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceManual, Actor: "ops", Effects: j.Effects}, r, k.now)
		k.ok(err)
		equal(k, "trigger", reply.Outcome, daybook.Started)
		equal(k, "triggers", run.Triggers, 1)
		lose()
		runs, err := s.Claim(k.ctx, daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: 4, Lease: k.now.Add(time.Minute), NewID: NewID}, k.now)
		k.ok(err)
		if len(runs) != 1 || runs[0].State != daybook.Running || runs[0].Fence != 1 {
			k.Fatalf("claimed %+v", runs)
		}
		lose()
		k.ok(begin(k.ctx, s, runs[0], j, k.now))
		lose()
		applied, err := s.Apply(k.ctx, []daybook.Transition{runs[0].Next(daybook.Outcome{Result: daybook.ResultPermanent, Error: "402"}, j.Policy(), k.now)})
		k.ok(err)
		equal(k, "the end is stale", applied[0].Stale, false)
		lose()
		paused, err := s.Pause(k.ctx, "renew", k.act("pause"))
		k.ok(err)
		equal(k, "paused", paused, true)
		lose()
		tok, err := s.AddToken(k.ctx, daybook.Token{Name: "ci", Role: daybook.RoleAct, MadeAt: k.now, MadeBy: "ops"}, "hash", k.act("add a token"))
		k.ok(err)
		equal(k, "number of the token", tok.Number, 1)
		lose()
		begun, _, err := s.BeginCall(k.ctx, daybook.Call{Caller: "t1", Key: "a", Fingerprint: "f"}, k.now.Add(time.Minute), k.now.Add(-time.Hour), k.now)
		k.ok(err)
		equal(k, "the call began", begun, true)
		lose()
		f1 := daybook.Freeze{Name: "deploy", From: k.now, Until: k.now.Add(time.Hour), Actor: "ops"}
		frozen, err := s.StartFreeze(k.ctx, f1, k.act("freeze start"))
		k.ok(err)
		equal(k, "the freeze began", frozen, true)
		lose()
		ended, err := s.EndFreeze(k.ctx, "deploy", k.act("freeze end"))
		k.ok(err)
		equal(k, "the freeze ended", ended, true)
		equal(k, "lost answers", f.Failed(), 9)
	}},
	{"an answer that is lost while the database stays away is told: it may be in the ledger", func(k *kit) {
		if !k.onlyPostgres() {
			return
		}
		j := Job("report")
		k.know(j)
		r := k.template(j, "2026-03-01")
		f := newFaults(1)
		s := k.faulty(f)
		f.Add(faultstore.Rule{Op: faultstore.Commit, Nth: 1, After: true, Err: io.ErrUnexpectedEOF, Hook: func(context.Context, faultstore.Call) error {
			f.Add(faultstore.Rule{Op: faultstore.Connect, Err: io.EOF})
			f.Add(faultstore.Rule{Op: faultstore.Begin, Err: io.EOF})
			return io.ErrUnexpectedEOF
		}})
		ask := func() (daybook.Reply, error) {
			reply, _, err := s.Trigger(k.ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceAPI}, r, k.now)
			return reply, err
		}
		_, err := ask()
		k.code(err, daybook.CodeUnavailable)
		if !strings.Contains(err.Error(), "it may be in the ledger") || daybook.HintOf(err) == "" {
			k.Errorf("it says %q, hint %q", err, daybook.HintOf(err))
		}
		f.Reset()
		reply, err := ask()
		k.ok(err)
		equal(k, "asked again", reply.Outcome, daybook.Joined)
	}},
	{"a claim whose answer was lost for long comes back when it is asked for again, and only while its lease lasts", func(k *kit) {
		k.many(Job("report", allow), 3)
		c := daybook.Claim{Node: "n1", Lane: daybook.LaneLive, Limit: 2, Lease: k.now.Add(time.Minute), NewID: func() string { return "c1" }}
		first, err := k.s.Claim(k.ctx, c, k.now)
		k.ok(err)
		c.Again = true
		again, err := k.s.Claim(k.ctx, c, k.now.Add(time.Second))
		k.ok(err)
		if len(again) != 2 || again[0].Fence != 1 || !sameKeys(first, again) {
			k.Errorf("asked again: %v, want %v", keys(again), keys(first))
		}
		c.Lease = k.now.Add(3 * time.Minute)
		third, err := k.s.Claim(k.ctx, c, k.now.Add(2*time.Minute))
		k.ok(err)
		if len(third) != 1 || sameKeys(first, third) {
			k.Errorf("after its lease: %v", keys(third))
		}
		c.Again, c.NewID = true, func() string { return "c2" }
		none, err := k.s.Claim(k.ctx, c, k.now.Add(2*time.Minute))
		k.ok(err)
		equal(k, "a claim that took nothing, and nothing is due", len(none), 0)
	}},
	{"tries with a database that is away have an end, and a read has one too", func(k *kit) {
		if !k.onlyPostgres() {
			return
		}
		f := newFaults(1)
		s := k.faulty(f)
		for _, op := range []faultstore.Op{faultstore.Connect, faultstore.Begin, faultstore.Query} {
			f.Add(faultstore.Rule{Op: op, Err: io.EOF})
		}
		k.code(s.Beat(k.ctx, daybook.Node{ID: "n1"}, k.now), daybook.CodeUnavailable)
		_, err := s.Counts(k.ctx)
		k.code(err, daybook.CodeUnavailable)
		if n := f.Failed(); n < 10 || n > 60 {
			k.Errorf("%d tries", n)
		}
		ctx, cancel := context.WithCancel(k.ctx)
		cancel()
		if err := s.Beat(ctx, daybook.Node{ID: "n1"}, k.now); !errors.Is(err, context.Canceled) {
			k.Errorf("with a context that is over: %v", err)
		}
	}},
	{"a connection to a server that only lets read is not used again", func(k *kit) {
		if !k.onlyPostgres() {
			return
		}
		f := newFaults(1)
		s := k.faulty(f)
		k.ok(s.Beat(k.ctx, daybook.Node{ID: "n1"}, k.now))
		connects := 0
		f.Add(faultstore.Rule{Op: faultstore.Connect, Hook: func(context.Context, faultstore.Call) error { connects++; return nil }})
		f.Add(faultstore.Rule{Op: faultstore.Query, Nth: 1, Err: stateError("25006")})
		k.ok(s.Beat(k.ctx, daybook.Node{ID: "n1"}, k.now.Add(time.Second)))
		equal(k, "new connections", connects, 1)
		f.Add(faultstore.Rule{Op: faultstore.Query, Err: stateError("25006")})
		err := s.Beat(k.ctx, daybook.Node{ID: "n1"}, k.now)
		k.code(err, daybook.CodeUnavailable)
		if !strings.Contains(daybook.HintOf(err), "target_session_attrs=read-write") {
			k.Errorf("hint %q", daybook.HintOf(err))
		}
	}},
}
