package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/gateway"
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
	f.BoolVar(&o.breakKey, "break-key", false, "show the same without keys: what cron, a retry and a click do to a customer")
	return cmd
}

// Of the shop in the demo.
const (
	demoJob      = "renew"
	demoCustomer = "sub_01"
	demoCalled   = "invoice" // the job by HTTP
	demoClientOf = "firm_02" // whom it charges
	demoSettles  = 2 * time.Second
	demoPatience = 30 * time.Second // for one thing to happen
	demoPause    = 2 * time.Second  // for reading
)

// demo plays the acts in a directory of its own and removes everything.
func (a *app) demo(ctx context.Context, o demoFlags) (err error) {
	d, err := a.newDemo(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.end(ctx)) }()
	fmt.Fprintln(a.Stdout, a.lang.F("a shop with one charge due each day, and a payment gateway that keeps its own book        (dir %s)", d.dir))
	if err := d.startGateway(ctx); err != nil {
		return d.interrupted(ctx, err)
	}
	if err := d.openShop(ctx); err != nil {
		return d.interrupted(ctx, err)
	}
	acts := []func(context.Context) error{d.three, d.killed, d.cutOff, d.declined}
	if o.breakKey {
		acts = []func(context.Context) error{d.withoutKeys}
	}
	for i, act := range acts {
		d.head = fmt.Sprintf("[%d/%d]", i+1, len(acts))
		if err := act(ctx); err != nil {
			return d.interrupted(ctx, err)
		}
		if err := d.pause(ctx); err != nil {
			return d.interrupted(ctx, err)
		}
	}
	if o.breakKey {
		return nil
	}
	return d.interrupted(ctx, d.total(ctx))
}

// interrupted makes of an error that came after Ctrl-C the exit code of that.
func (d *demo) interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return &coded{code: 130, err: ctx.Err(), silent: true}
	}
	return err
}

// demo is one demonstration: the gateway and serve are processes of their own, and what is told of money is counted from
// the gateway's book.
type demo struct {
	*app
	o       demoFlags
	dir     string
	program string
	began   time.Time
	days    []string // today, and the days before
	zone    string
	head    string // number of the act

	address string // of the gateway
	gateway *child
	shop    *demoShop
	server  *child
	ledger  *ledger // for looking; the acts are those of the command line
}

func (a *app) newDemo(o demoFlags) (*demo, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, daybook.New(daybook.CodeInternal, "find this program").Because(err)
	}
	d := &demo{app: a, o: o, program: program, began: time.Now(), zone: "UTC"}
	// Midnight would start one more renewal in mid-play.
	if now := d.began.UTC(); now.Hour() == 23 && now.Minute() > 57 {
		d.zone = "Asia/Shanghai"
	}
	loc, err := time.LoadLocation(d.zone)
	if err != nil {
		return nil, err
	}
	for back := range 5 {
		d.days = append(d.days, d.began.In(loc).AddDate(0, 0, -back).Format(time.DateOnly))
	}
	if d.dir, err = os.MkdirTemp("", "daybook-demo-"); err != nil {
		return nil, daybook.New(daybook.CodeUnavailable, "make a directory for the demo").Because(err)
	}
	return d, nil
}

// demoFile is the file that serve runs. The job is this program too, so that the demo needs nothing else. Its schedule
// asks every two seconds, far more often than anybody would: the day is done once all the same.
const demoFile = `version: 1
timezone: %[1]s
database: sqlite:daybook.db
channels: {log: {type: file, path: alerts.log}}
alerts: {P0: {to: [log]}}
jobs:
  renew:
    priority: P0
    owner: you
    schedule: every 2s
    window: day
    effects: once
    overlap: allow
    run: [%[2]q, demo-charge, --gateway, %[3]q, --customer, sub_01, --day, "{window}", --die-with-parent]
    probe: [%[2]q, demo-charge, --gateway, %[3]q, --ask]
    settles: %[4]s
    retry: {backoff: [1s], jitter: 0%%}
  invoice:
    priority: P0
    owner: you
    window: day
    effects: once
    http: {url: %[5]q}
    probe_url: %[6]q
    settles: %[4]s
    retry: {backoff: [1s, 1s], jitter: 0%%}
`

func (d *demo) config() string { return filepath.Join(d.dir, "daybook.yaml") }
func (d *demo) book() string   { return filepath.Join(d.dir, "gateway.jsonl") }
func (d *demo) alerts() string { return filepath.Join(d.dir, "alerts.log") }

// serve starts a process of the real thing and waits until it works.
func (d *demo) serve(ctx context.Context) error {
	if _, err := os.Stat(d.config()); err != nil {
		text := fmt.Sprintf(demoFile, d.zone, d.program, d.address, demoSettles, d.shop.url("/jobs/invoice"), d.shop.url("/jobs/invoice/probe"))
		if err := os.WriteFile(d.config(), []byte(text), 0o600); err != nil {
			return err
		}
	}
	var err error
	d.server, _, err = d.start(ctx, "daybook serves ", "serve", "-c", d.config(), "--lease", shortestLease.String())
	if err != nil || d.ledger != nil {
		return err
	}
	d.ledger, err = d.openAt(ctx, "cli", "sqlite:"+filepath.Join(d.dir, "daybook.db"), nil, false)
	return err
}

// three is the act of three who ask for one day.
func (d *demo) three(ctx context.Context) error {
	today := d.days[0]
	d.title("%s  Three ask for one day: the schedule, the platform that tries again, you", today)
	if err := d.fault(ctx, `{"fault":"slow","delay":"3s"}`); err != nil {
		return err
	}
	if err := d.serve(ctx); err != nil {
		return err
	}
	if err := d.until(ctx, daybook.Say("the schedule starts the renewal"), func() (bool, error) { return d.charged(today) > 0, nil }); err != nil {
		return err
	}
	retry, err := d.trigger(ctx, "platform", today)
	if err != nil {
		return err
	}
	if _, err := d.ends(ctx, today, daybook.Done); err != nil {
		return err
	}
	click, err := d.trigger(ctx, "", today)
	if err != nil {
		return err
	}
	first, more, err := d.fires(ctx, today)
	if err != nil {
		return err
	}
	d.speak("schedule → %s    platform retry → %s    you, clicking → %s", first, retry, click)
	d.speak("and the schedule, every 2 s from then on → %s", more)
	return d.check(today)
}

// killed is the act of a kill in mid-charge, of two windows at once: one was charged already, the other was not.
func (d *demo) killed(ctx context.Context) error {
	yes, no := d.days[1], d.days[2]
	d.title("%s and %s  kill -9 in mid-charge", no, yes)
	if err := d.fault(ctx, `{"fault":"slow","delay":"1m"}`); err != nil {
		return err
	}
	if _, err := d.trigger(ctx, "", yes); err != nil {
		return err
	}
	if err := d.until(ctx, daybook.Say("a charge that is booked and not answered"), func() (bool, error) { return d.charged(yes) > 0, nil }); err != nil {
		return err
	}
	if err := d.fault(ctx, `{"fault":"timeout_before","delay":"1m"}`); err != nil {
		return err
	}
	if _, err := d.trigger(ctx, "", no); err != nil {
		return err
	}
	if err := d.until(ctx, daybook.Say("a request that is not booked"), func() (bool, error) { return d.requested(no) > 0, nil }); err != nil {
		return err
	}
	d.server.kill()
	d.speak("kill -9: %s is charged and nobody knows, %s was asked for and is not charged", yes, no)
	if err := d.serve(ctx); err != nil {
		return err
	}
	d.speak("a new process; the lease is over; what became of them? it asks the gateway:")
	for _, day := range []string{yes, no} {
		r, err := d.ends(ctx, day, daybook.Done)
		if err != nil {
			return err
		}
		told, err := d.answers(ctx, r)
		if err != nil {
			return err
		}
		d.speak("%s", told)
	}
	return d.check(yes, no)
}

// answers tells what the probe said about a run, and what followed.
func (d *demo) answers(ctx context.Context, r *daybook.Run) (daybook.Text, error) {
	attempts, err := d.ledger.Control().Attempts(ctx, r.Key)
	if err != nil {
		return daybook.Text{}, err
	}
	var said daybook.Words
	tries := 0
	for _, at := range attempts {
		if at.Probe {
			said = append(said, string(at.Result))
		} else {
			tries++
		}
	}
	if tries == 1 {
		return daybook.Say("%s  probe: %s → done, not repeated", r.Window.Label, said), nil
	}
	return daybook.Say("%s  probe: %s (a no counts only %s after the end) → charged under %s", r.Window.Label, said, demoSettles, r.WireKey()), nil
}

// cutOff is the act of a gateway behind a proxy that gives up twice: nobody knows whether the money moved.
func (d *demo) cutOff(ctx context.Context) error {
	day := d.days[3]
	d.title("%s  504, twice: a job by HTTP, and a proxy that gives up", day)
	if err := d.fault(ctx, fmt.Sprintf(`{"fault":"timeout_before","customer":%q,"times":2}`, demoClientOf)); err != nil {
		return err
	}
	if _, err := d.triggerJob(ctx, demoCalled, "", day); err != nil {
		return err
	}
	r, err := d.endsOf(ctx, demoCalled, day, daybook.Done)
	if err != nil {
		return err
	}
	attempts, err := d.ledger.Control().Attempts(ctx, r.Key)
	if err != nil {
		return err
	}
	story := daybook.Text{}
	add := func(step daybook.Text) {
		if story.IsZero() {
			story = step
			return
		}
		story = daybook.Say("%s → %s", story, step)
	}
	var said daybook.Words
	for _, at := range attempts {
		if at.Probe {
			if word := string(at.Result); !isOneOf(said, word) { // each key that was used is asked for, until a no counts
				said = append(said, word)
			}
			continue
		}
		if len(said) > 0 {
			add(daybook.Say("probe: %s", said))
			said = nil
		}
		if _, try, _ := strings.Cut(at.WireKey, "#"); try != "" {
			add(daybook.Say("#%s", try))
		}
		if at.Result == daybook.ResultDone {
			add(daybook.Say("charged"))
		} else {
			add(daybook.Say("%s, unknown", at.Detail))
		}
	}
	d.speak("%s", story)
	return d.checkOf(demoClientOf, day)
}

// declined is the act of a card that is declined.
func (d *demo) declined(ctx context.Context) error {
	day := d.days[4]
	d.title("%s  A declined card", day)
	if err := d.card(ctx, false); err != nil {
		return err
	}
	if _, err := d.trigger(ctx, "", day); err != nil {
		return err
	}
	r, err := d.ends(ctx, day, daybook.Dead)
	if err != nil {
		return err
	}
	d.speak("402 is a definite no → dead letter, not tried again by itself: %s", r.LastError)
	told, err := d.told(ctx, r.Key)
	if err != nil {
		return err
	}
	d.speak("alerts.log: %s", told)
	click, err := d.trigger(ctx, "", day)
	if err != nil {
		return err
	}
	if err := d.card(ctx, true); err != nil {
		return err
	}
	replayed, err := d.answer(ctx, "", "dead", "replay", string(r.Key), "--reason", "card changed", "--yes", "--json")
	if err != nil {
		return err
	}
	if r, err = d.ends(ctx, day, daybook.Done); err != nil {
		return err
	}
	d.speak("you, clicking → %s    card changed, daybook dead replay → %s: charged under %s", click, replayed, r.WireKey())
	return d.check(day)
}

// told waits until the channel of the demo has the alert about a key, and returns its first line.
func (d *demo) told(ctx context.Context, k daybook.Key) (line string, err error) {
	err = d.until(ctx, daybook.Say("the alert about %s", k), func() (bool, error) {
		text, err := os.ReadFile(d.alerts())
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		for l := range strings.Lines(string(text)) {
			if strings.HasPrefix(l, "[P0] "+string(k)+" ") {
				line = strings.TrimSpace(l)
			}
		}
		return line != "", err
	})
	return line, err
}

// withoutKeys is the first act as plain cron, a platform and a person would play it: each runs the command.
func (d *demo) withoutKeys(ctx context.Context) error {
	today := d.days[0]
	d.title("%s  The same three, without keys: each runs the command", today)
	for range 3 {
		if code := d.run(ctx, "demo-charge", "--gateway", d.address, "--customer", demoCustomer, "--day", today); code != 0 {
			return daybook.New(daybook.CodeInternal, "the charge ended with %d", code)
		}
	}
	d.speak("cron → charged    platform retry → charged    you, clicking → charged")
	t, err := gateway.Count(d.book())
	if err != nil {
		return err
	}
	d.speak("gateway's book: due 1, charged %d, twice %d        ✕ %s was billed %d times", t.Charges, t.Twice, demoCustomer, t.Charges)
	return d.line("%d charges for 1 due. With keys: daybook demo", t.Charges)
}

// check counts the renewals of days from the gateway's book. Each is due once.
func (d *demo) check(days ...string) error { return d.checkOf(demoCustomer, days...) }

func (d *demo) checkOf(customer string, days ...string) error {
	t, err := gateway.Count(d.book())
	if err != nil {
		return err
	}
	charged, twice := 0, 0
	for _, day := range days {
		n := t.ByDay[gateway.CustomerDay{Customer: customer, Day: day}]
		charged += n
		twice += max(n-1, 0)
	}
	mark := "✓"
	if charged != len(days) {
		mark = "✕"
	}
	d.speak("gateway's book: due %d, charged %d, twice %d        %s", len(days), charged, twice, mark)
	if charged != len(days) {
		return daybook.New(daybook.CodeInternal, "the gateway charged %d for %d due", charged, len(days))
	}
	return nil
}

// total adds everything up, from the book and from the ledger, and lets the viewer look around.
func (d *demo) total(ctx context.Context) error {
	t, err := gateway.Count(d.book())
	if err != nil {
		return err
	}
	runs, err := d.ledger.Control().Find(ctx, "", 100)
	if err != nil {
		return err
	}
	triggers := 0
	for _, r := range runs {
		triggers += r.Triggers
	}
	if err := d.line("Triggers %d → windows %d → charges %d for %d due, twice %d.        took %.0f s", triggers, len(runs), t.Charges, len(runs), t.Twice,
		time.Since(d.began).Seconds()); err != nil {
		return err
	}
	if len(runs) != len(d.days) || t.Charges != len(runs) || t.Twice != 0 {
		return daybook.New(daybook.CodeInternal, "%d windows and %d charges, and there should be %d of each", len(runs), t.Charges, len(d.days))
	}
	wait := !d.o.fast && d.interactive()
	look := "daybook key show renew:" + d.days[2] + " -c " + d.config()
	switch {
	case wait:
		fmt.Fprintln(d.Stdout, d.lang.F("Look: daybook status -c %s\n      %s\nYours: daybook init --from-crontab        Stop: Ctrl-C (deletes the directory; --keep keeps it)", d.config(), look))
		<-ctx.Done()
	case d.o.keep:
		fmt.Fprintln(d.Stdout, d.lang.F("Look: %s\nYours: daybook init --from-crontab        Gateway's book: %s", look, d.book()))
	default:
		fmt.Fprintln(d.Stdout, d.lang.F("Look: daybook demo --keep        Yours: daybook init --from-crontab        Without keys: daybook demo --break-key"))
	}
	return nil
}

func (d *demo) title(format string, args ...any) {
	fmt.Fprintf(d.Stdout, "%s %s\n", d.head, d.lang.F(format, args...))
}

func (d *demo) speak(format string, args ...any) {
	fmt.Fprintf(d.Stdout, "      %s\n", d.lang.F(format, args...))
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
	err = errors.Join(err, d.gateway.stop(ctx), d.shop.close())
	if d.ledger != nil {
		err = errors.Join(err, d.ledger.Close())
	}
	if d.o.keep {
		return errors.Join(err, d.line("kept: %s", d.dir))
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}
