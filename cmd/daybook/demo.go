package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/gateway"
	"github.com/daybook-run/daybook/internal/lang"
)

// demoFlags say how the demo is played.
type demoFlags struct{ fast, keep, breakKey bool }

func newDemo(a *app) *cobra.Command {
	var o demoFlags
	cmd := &cobra.Command{
		Use: "demo", Short: textDemo, Long: textDemoLong, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.fast, "fast", false, "no pauses for reading, and no waiting at the end")
	f.BoolVar(&o.keep, "keep", false, "keep the directory")
	f.BoolVar(&o.breakKey, "break-key", false, "show the second act without keys: what cron, a retry and a click do to twenty customers")
	return cmd
}

// Of the shop in the demo.
const (
	demoJob      = "renew"
	demoZone     = "Europe/Berlin"
	demoPatience = 30 * time.Second // for one thing to happen
	demoPause    = 2 * time.Second  // for reading
)

// demoDays are the business dates of the acts. In the first night the clocks go forward, from two to three.
var demoDays = []string{"2026-03-29", "2026-03-30", "2026-03-31", "2026-04-01"}

// demo plays the acts in a directory of its own and removes everything.
func (a *app) demo(ctx context.Context, o demoFlags) (err error) {
	d, err := a.newDemo(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.end(ctx)) }()
	fmt.Fprintln(a.Stdout, a.lang.F("a shop with %d subscriptions due each day and a payment gateway that keeps its own book        (dir %s)", demoDue, d.dir))
	fmt.Fprintln(a.Stdout, a.lang.F("clock ×%d, idle hours are jumped over", demoPace))
	return d.interrupted(ctx, d.play(ctx))
}

// play plays what was asked for.
func (d *demo) play(ctx context.Context) error {
	if err := d.open(ctx); err != nil {
		return err
	}
	acts := []func(context.Context, string) error{d.night, d.three, d.killed, d.declined}
	days := demoDays
	if d.o.breakKey {
		acts, days = []func(context.Context, string) error{d.withoutKeys}, demoDays[1:2]
	} else if err := d.serve(ctx); err != nil {
		return err
	}
	for i, act := range acts {
		d.head = fmt.Sprintf("[%d/%d]", i+1, len(acts))
		if err := act(ctx, days[i]); err != nil {
			return err
		}
		if err := d.pause(ctx); err != nil {
			return err
		}
	}
	if d.o.breakKey {
		return nil
	}
	return d.total(ctx)
}

// interrupted makes of an error that came after Ctrl-C the exit code of that.
func (d *demo) interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return &coded{code: 130, err: ctx.Err(), silent: true}
	}
	return err
}

// demo is one demonstration: gateway, shop and serve are processes of their own, and what is told of money is counted from
// the gateway's book.
type demo struct {
	*app
	o       demoFlags
	dir     string
	program string
	began   time.Time
	zone    *time.Location
	clock   *demoClock
	head    string // number of the act

	gateway, shop, server *child
	gatewayAt, shopAt     string
	serverAt              string
	token                 string  // of the platform
	ledger                *ledger // for looking; the acts are those of the command line and of the API
}

func (a *app) newDemo(o demoFlags) (*demo, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, daybook.New(daybook.CodeInternal, "find this program").Because(err)
	}
	zone, err := time.LoadLocation(demoZone)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "daybook-demo-")
	if err != nil {
		return nil, daybook.New(daybook.CodeUnavailable, "make a directory for the demo").Because(err)
	}
	d := &demo{app: a, o: o, dir: dir, program: program, began: time.Now(), zone: zone, clock: &demoClock{path: filepath.Join(dir, "clock.json")}}
	return d, d.jump(demoDays[0], "01:59:50")
}

// demoFile is the file that serve runs.
const demoFile = `version: 1
name: shop
timezone: Europe/Berlin
database: sqlite:daybook.db
channels: {log: {type: file, path: alerts.log}}
alerts: {P0: {to: [log]}}
jobs:
  renew:
    priority: P0
    owner: you
    schedule: "0 2 * * *"
    window: day
    subjects: {url: "%[1]s/due"}
    http: {url: "%[1]s/jobs/renew"}
    effects: once
    steps: true
    probe_url: "%[1]s/jobs/renew/probe"
    serial: gateway
    retry: {backoff: [1m, 5m, 25m], jitter: 0%%}
`

func (d *demo) config() string { return filepath.Join(d.dir, "daybook.yaml") }
func (d *demo) book() string   { return filepath.Join(d.dir, "gateway.jsonl") }
func (d *demo) alerts() string { return filepath.Join(d.dir, "alerts.log") }

// total adds everything up, from the book and from the ledger, and lets the viewer look around.
func (d *demo) total(ctx context.Context) error {
	t, err := gateway.Count(d.book())
	if err != nil {
		return err
	}
	runs, err := d.ledger.Control().Find(ctx, demoJob+":", (demoDue+1)*len(demoDays)+1)
	if err != nil {
		return err
	}
	triggers, windows := 0, 0
	for _, r := range runs {
		triggers += r.Triggers
		if r.Subject == "" {
			windows++
		}
	}
	due := demoDue * windows
	if err := d.line("Triggers %d → windows %d → charges %d for %d due, twice %d.        took %.0f s", triggers, windows, t.Charges, due, t.Twice,
		time.Since(d.began).Seconds()); err != nil {
		return err
	}
	if windows != len(demoDays) || t.Charges != due || t.Twice != 0 {
		return daybook.New(daybook.CodeInternal, "%d windows and %d charges, and there should be %d and %d", windows, t.Charges, len(demoDays), demoDue*len(demoDays))
	}
	look := "daybook key show renew:" + demoDays[0] + " -c " + d.config()
	switch {
	case !d.o.fast && d.interactive():
		fmt.Fprintln(d.Stdout, d.lang.F("Look: %s\nYours: daybook init --from-crontab        Stop: Ctrl-C (deletes the directory; --keep keeps it)", look))
		<-ctx.Done()
	case d.o.keep:
		fmt.Fprintln(d.Stdout, d.lang.F("Look: %s\nYours: daybook init --from-crontab        Gateway's book: %s", look, d.book()))
	default:
		fmt.Fprintln(d.Stdout, d.lang.F("Look: daybook demo --keep        Yours: daybook init --from-crontab        Without keys: daybook demo --break-key"))
	}
	return nil
}

// Columns of what is told: of the second thing in a line, and of the mark of an act.
const (
	demoSecond = 63
	demoMark   = 118
)

func (d *demo) title(day, format string, args ...any) {
	fmt.Fprintf(d.Stdout, "%s %s  %s\n", d.head, day, d.lang.F(format, args...))
}

// tell tells one or two things in a line.
func (d *demo) tell(things ...daybook.Text) {
	line := "      " + d.lang.Say(things[0])
	for _, more := range things[1:] {
		line = lang.Pad(line+"  ", demoSecond) + d.lang.Say(more)
	}
	fmt.Fprintln(d.Stdout, line)
}

// closing ends an act with its mark: right means that the book and the ledger are as they should be. Of what the book says the
// first form that fits is told.
func (d *demo) closing(right bool, told daybook.Text, book ...daybook.Text) {
	line := "      " + d.lang.Say(told)
	for _, form := range book {
		if longer := lang.Pad(line+"    ", demoSecond) + d.lang.Say(form); lang.Width(longer) < demoMark-1 {
			line = longer
			break
		}
	}
	mark := "✓"
	if !right {
		mark = "✕"
	}
	fmt.Fprintln(d.Stdout, lang.Pad(line+"  ", demoMark)+mark)
}

// pause leaves time for reading.
func (d *demo) pause(ctx context.Context) error {
	if d.o.fast || !d.interactive() {
		return ctx.Err()
	}
	_, err := waitWhile(ctx, demoPause, twice())
	return errors.Join(err, ctx.Err())
}

// twice is busy once.
func twice() func() (bool, error) {
	n := 0
	return func() (bool, error) {
		n++
		return n < 2, nil
	}
}

// end ends every process and removes the directory, also after Ctrl-C.
func (d *demo) end(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	err := d.server.stop(ctx)
	err = errors.Join(err, d.shop.stop(ctx), d.gateway.stop(ctx))
	if d.ledger != nil {
		err = errors.Join(err, d.ledger.Close())
	}
	if d.o.keep {
		return errors.Join(err, d.line("kept: %s", d.dir))
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}
