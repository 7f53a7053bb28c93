package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"
)

// figure is one thing that was measured.
type figure struct {
	Measure string
	Value   float64
}

// measure says what a figure is.
type measure struct {
	Name string
	Unit string
	Less bool // less is better
	What text
}

// text is the same sentence in both languages.
type text struct{ EN, ZH string }

// scenario is a shape of work, done by one peer after the other, round by round.
type scenario struct {
	Name     string
	Title    text
	What     text
	Measures []measure
	run      func(ctx context.Context, p peer, t terms) ([]figure, error)
	warm     bool // once for nothing before the first round
	rounds   int  // at most; 0: as many as asked for
}

// terms are how much is measured, and where.
type terms struct {
	place *place
	short bool
	tiny  bool // to see that it works
}

// pick returns how much of something is taken.
func pick[T any](t terms, full, short, tiny T) T {
	switch {
	case t.tiny:
		return tiny
	case t.short:
		return short
	}
	return full
}

// n is how many pieces of work a peer gets of those that a scenario wants.
func (t terms) n(p peer, full, short, tiny int) int {
	return max(pick(t, int(float64(full)*p.about().Share), int(float64(short)*p.about().Share), tiny), tiny)
}

// scenarios are all there are, in the order of the report.
var scenarios = []*scenario{&inserting, &draining, &waiting, &onceOnly, &stepping, &asking, &planning, &costing, &idling, &starting}

// sample is one figure of one peer in one round.
type sample struct {
	Scenario, Measure, Peer string
	Round                   int
	Value                   float64
	Foreign                 float64 // cores that others kept busy meanwhile
}

// missing is a peer that could not be had, or a scenario that it does not offer or failed, and why.
type missing struct{ Peer, Scenario, Why string }

// results are all that a run found out.
type results struct {
	At      time.Time
	Took    time.Duration
	Short   bool
	Machine machine
	Stores  map[store]string // versions and settings
	Peers   map[string]about
	Samples []sample
	Missing []missing
}

// bench runs scenarios.
type bench struct {
	terms  terms
	rounds int
	log    io.Writer
	// statements is told what each of them took PostgreSQL; nil: they are not counted for that.
	statements io.Writer
	names      []string // of the peers that could be had, in the order of their turns
	open       map[string]peer
	found      *results
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.log, format+"\n", args...) }

// run has every peer do a scenario in turns: A B C, then B C A. The first round of each pair is one instant, so what the
// machine does meanwhile meets all of them alike.
func (b *bench) run(ctx context.Context, sc *scenario) error {
	left := slices.Clone(b.names)
	rounds := b.rounds
	if sc.rounds > 0 {
		rounds = min(rounds, sc.rounds)
	}
	first := 1
	if sc.warm {
		first = 0
	}
	for round := first; round <= rounds; round++ {
		for _, name := range turns(left, round) {
			if err := ctx.Err(); err != nil {
				return err
			}
			t := b.terms
			if round == 0 {
				t.tiny = true
			}
			runtime.GC()
			before := loadNow()
			figures, err := b.told(ctx, sc, name, t)
			if err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				left = slices.DeleteFunc(left, func(n string) bool { return n == name })
				b.miss(name, sc.Name, err)
				continue
			}
			if round > 0 {
				b.note(sc, name, round, figures, before.foreign())
			}
		}
	}
	return nil
}

// told has one peer do a scenario, and tells what each statement took where that is asked.
func (b *bench) told(ctx context.Context, sc *scenario, name string, t terms) (figures []figure, err error) {
	p := b.open[name]
	defer func() { err = firstOf(err, p.close()) }()
	if b.statements == nil || t.tiny || p.about().Store != onPostgres {
		return sc.run(ctx, p, t)
	}
	if err := firstOf(t.place.counting(ctx, "top"), t.place.heaviest(ctx, io.Discard)); err != nil {
		return nil, err
	}
	figures, err = sc.run(ctx, p, t)
	fmt.Fprintf(b.statements, "\n%s %s\n", sc.Name, name)
	return figures, firstOf(err, t.place.heaviest(ctx, b.statements), t.place.counting(ctx, "none"))
}

// turns rotates the order, so that no peer always comes after the same one.
func turns(names []string, round int) []string {
	if len(names) == 0 {
		return nil
	}
	k := round % len(names)
	return slices.Concat(names[k:], names[:k])
}

func (b *bench) note(sc *scenario, name string, round int, figures []figure, foreign float64) {
	line := fmt.Sprintf("%-9s %d  %-18s", sc.Name, round, name)
	for _, f := range figures {
		b.found.Samples = append(b.found.Samples, sample{sc.Name, f.Measure, name, round, f.Value, foreign})
		line += fmt.Sprintf("  %s %s", f.Measure, number(f.Value))
	}
	b.say("%s  (others: %.2f cores)", line, foreign)
}

func (b *bench) miss(name, scenario string, err error) {
	b.found.Missing = append(b.found.Missing, missing{name, scenario, err.Error()})
	if isCannot(err) {
		b.say("%-9s -  %-18s  does not: %v", scenario, name, err)
	} else {
		b.say("%-9s -  %-18s  MISSING: %v", scenario, name, err)
	}
}
