// Command bench does the same work with Daybook, with its peers and with the bare driver loop, in turns, on one PostgreSQL,
// one disk and one Redis, all of them durable, and says how they compare: medians with the lowest and the highest, and ratios
// of figures that were taken in the same round. Figures drift with machine and neighbours; ratios do so much less.
//
//	go run . -short            a quarter of an hour
//	go run .                   under an hour
//	go run . -only drain -peers daybook-sqlite,river-sqlite
//
// A peer that cannot be had is named in what comes out, with the reason, and the run goes on without it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// choice is what the command line asks for.
type choice struct {
	short, tiny bool
	rounds      int
	only, peers []string
	out, from   string
	profile     string
	statements  string
}

func parse(args []string) (c choice, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&c.short, "short", false, "fewer and shorter rounds: minutes")
	flags.BoolVar(&c.tiny, "tiny", false, "only see that everything works: figures mean nothing")
	flags.IntVar(&c.rounds, "rounds", 0, "rounds of each scenario (default 5, 3 with -short)")
	only := flags.String("only", "", "these scenarios, by name, with commas; default: all")
	peers := flags.String("peers", "", "these peers, by name, with commas; default: all")
	flags.StringVar(&c.out, "out", "results", "directory for the report; ../docs for that of the project")
	flags.StringVar(&c.from, "from", "", "measure nothing: write the report of these results.json again")
	flags.StringVar(&c.statements, "statements", "", "write what each statement took PostgreSQL to this file")
	flags.StringVar(&c.profile, "profile", "", "write a profile of this process's processor time to this file")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if c.rounds == 0 {
		c.rounds = pick(terms{short: c.short, tiny: c.tiny}, 5, 3, 1)
	}
	if c.only, err = chosen(*only, names(scenarios, func(s *scenario) string { return s.Name })); err != nil {
		return c, err
	}
	c.peers, err = chosen(*peers, names(peersAll, func(e entry) string { return e.name }))
	return c, err
}

func names[T any](list []T, name func(T) string) (all []string) {
	for _, v := range list {
		all = append(all, name(v))
	}
	return all
}

// chosen reads names with commas: all, when there are none.
func chosen(text string, all []string) ([]string, error) {
	if text == "" {
		return all, nil
	}
	list := strings.Split(text, ",")
	for _, n := range list {
		if !slices.Contains(all, n) {
			return nil, fmt.Errorf("%q is none of %s", n, strings.Join(all, " "))
		}
	}
	return list, nil
}

func run(ctx context.Context, args []string, log io.Writer) error {
	c, err := parse(args)
	if err != nil {
		return err
	}
	var found *results
	if c.from != "" {
		text, err := os.ReadFile(c.from)
		if err != nil {
			return err
		}
		found = new(results)
		if err := json.Unmarshal(text, found); err != nil {
			return err
		}
	} else if found, err = measureAll(ctx, c, log); err != nil {
		return err
	}
	return write(found, c.out, log)
}

// measureAll runs what was chosen.
func measureAll(ctx context.Context, c choice, log io.Writer) (_ *results, err error) {
	ground, err := newPlace(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ground.close()) }()
	b := &bench{terms: terms{place: ground, short: c.short, tiny: c.tiny}, rounds: c.rounds, log: log, open: make(map[string]peer),
		found: &results{At: time.Now().UTC(), Short: c.short || c.tiny, Stores: make(map[store]string), Peers: make(map[string]about)}}
	if b.found.Machine, err = thisMachine(ground.dir, pick(b.terms, 2*time.Second, 2*time.Second, 50*time.Millisecond)); err != nil {
		return nil, err
	}
	if c.statements != "" {
		f, err := os.Create(c.statements)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		b.statements = f
	}
	stop, err := profiled(c.profile)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	b.enlist(ctx, c.peers)
	for _, s := range scenarios {
		if !slices.Contains(c.only, s.Name) {
			continue
		}
		if err := b.run(ctx, s); err != nil {
			return nil, err
		}
	}
	b.found.Took = time.Since(b.found.At)
	return b.found, nil
}

// enlist opens the peers. One that cannot be had is told of.
func (b *bench) enlist(ctx context.Context, wanted []string) {
	b.found.Stores[onSQLite] = sqliteSettings
	b.found.Stores[onPostgres] = strings.Join(pgSettings, ", ")
	for _, e := range peersAll {
		if !slices.Contains(wanted, e.name) {
			continue
		}
		p, err := e.open(ctx, b.terms.place)
		if err != nil {
			b.miss(e.name, "", err)
			continue
		}
		b.names, b.open[e.name], b.found.Peers[e.name] = append(b.names, e.name), p, p.about()
	}
}

// profiled writes a profile until stop.
func profiled(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() error { pprof.StopCPUProfile(); return f.Close() }, nil
}
