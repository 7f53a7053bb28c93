package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/gateway"
)

// night is the night of 29 March: a clock change, a deployment in mid-charge, a platform that tries again, a declined card,
// and somebody who wakes up and clicks.
func (d *demo) night(ctx context.Context, day string) error {
	d.title(day, "The night of 29 March, Europe/Berlin")
	if err := errors.Join(d.fault(ctx, `{"fault":"slow","customer":"sub_07","delay":"1m"}`), d.card(ctx, "sub_13", false)); err != nil {
		return err
	}
	if err := d.killWhileCharged(ctx, day, "sub_07"); err != nil {
		return err
	}
	first, err := d.scheduled(ctx, day)
	if err != nil {
		return err
	}
	d.tell(daybook.Say("%s schedule → %s (02:00 does not exist)", d.second(first.At), first.Outcome), daybook.Say("%s kill -9 while %s is being charged", d.second(d.clock.Now()), "sub_07"))

	if err := errors.Join(d.runTo(day, "03:00:20"), d.serve(ctx)); err != nil {
		return err
	}
	retry, err := d.platform(ctx, day)
	if err != nil {
		return err
	}
	retried := d.clock.Now()
	if err := d.runTo(day, "03:00:36"); err != nil {
		return err
	}
	asked, err := d.settledByProbe(ctx, day, "sub_07")
	if err != nil {
		return err
	}
	d.tell(daybook.Say("%s platform retry → %s", d.second(retried), retry), daybook.Say("%s probe: %s is charged → not repeated → extended", d.second(asked), "sub_07"))

	if err := d.runTo(day, "03:00:37"); err != nil {
		return err
	}
	dead, err := d.ends(ctx, day, "sub_13", daybook.Dead)
	if err != nil {
		return err
	}
	if err := d.until(ctx, daybook.Say("the others go on"), func() (bool, error) { return d.done(ctx, day) == demoDue-1, nil }); err != nil {
		return err
	}
	if err := d.jump(day, "08:58:00"); err != nil {
		return err
	}
	click, err := d.click(ctx, daybook.Refused)
	if err != nil {
		return err
	}
	d.tell(daybook.Say("%s %s declined → dead letter; %d go on", d.second(dead.EndedAt), "sub_13", demoDue-1), daybook.Say("%s you, clicking → %s: replay it", d.minute(), click))

	if err := d.jump(day, "09:10:00"); err != nil {
		return err
	}
	wire, err := d.cardChanged(ctx, day, "sub_13")
	if err != nil {
		return err
	}
	return d.books(day, daybook.Say("%s card changed, replay → …/%s", d.minute(), strings.TrimPrefix(wire, demoJob+":"+day+"/")))
}

// three is the act of three who ask for one day.
func (d *demo) three(ctx context.Context, day string) error {
	d.title(day, "Trigger three times, charge once")
	if err := d.fault(ctx, `{"fault":"slow","customer":"sub_10","delay":"1m"}`); err != nil {
		return err
	}
	if err := errors.Join(d.jump(day, "01:59:50"), d.runTo(day, "02:00:01")); err != nil {
		return err
	}
	if err := d.isCharged(ctx, day, "sub_10"); err != nil {
		return err
	}
	retry, err := d.platform(ctx, day)
	if err != nil {
		return err
	}
	if err := d.noFaults(ctx); err != nil {
		return err
	}
	if _, err := d.ends(ctx, day, "", daybook.Done); err != nil {
		return err
	}
	if err := d.jump(day, "08:58:00"); err != nil {
		return err
	}
	click, err := d.click(ctx, daybook.Reused)
	if err != nil {
		return err
	}
	first, err := d.scheduled(ctx, day)
	if err != nil {
		return err
	}
	return d.books(day, daybook.Say("schedule → %s    platform retry → %s    you, clicking → %s", first.Outcome, retry, click))
}

// killed is the act of what leaves a caller without knowing: a kill in mid-charge, a kill between two steps, and a proxy that
// gives up, twice.
func (d *demo) killed(ctx context.Context, day string) error {
	d.title(day, "Kill in mid-charge, kill between charged and extended, then 504 twice")
	if err := errors.Join(d.fault(ctx, `{"fault":"slow","customer":"sub_07","delay":"1m"}`), d.hold(ctx, "sub_11"),
		d.fault(ctx, `{"fault":"timeout_before","customer":"sub_15","times":2}`)); err != nil {
		return err
	}
	if err := d.killWhileCharged(ctx, day, "sub_07"); err != nil {
		return err
	}
	if err := errors.Join(d.runTo(day, "02:00:20"), d.serve(ctx), d.runTo(day, "02:00:36")); err != nil {
		return err
	}
	if err := errors.Join(d.killWhileExtended(ctx, day, "sub_11"), d.runTo(day, "02:00:55"), d.serve(ctx), d.runTo(day, "02:01:11")); err != nil {
		return err
	}
	tries, err := d.through(ctx, day, "sub_15")
	if err != nil {
		return err
	}
	if _, err := d.settledByProbe(ctx, day, "sub_07"); err != nil {
		return err
	}
	if err := d.extendedLater(ctx, day, "sub_11"); err != nil {
		return err
	}
	if _, err := d.ends(ctx, day, "", daybook.Done); err != nil {
		return err
	}
	return d.books(day, daybook.Say("%s probe: yes · %s extended · %s unknown → probe: no → %s → %s", "sub_07", "sub_11", "sub_15", tries[1], tries[2]))
}

// declined is the act of a card that is declined.
func (d *demo) declined(ctx context.Context, day string) error {
	d.title(day, "A declined card")
	if err := d.card(ctx, "sub_16", false); err != nil {
		return err
	}
	if err := errors.Join(d.jump(day, "01:59:50"), d.runTo(day, "02:00:01")); err != nil {
		return err
	}
	if _, err := d.ends(ctx, day, "sub_16", daybook.Dead); err != nil {
		return err
	}
	if err := d.alerted(ctx, day, "sub_16"); err != nil {
		return err
	}
	if err := d.jump(day, "09:10:00"); err != nil {
		return err
	}
	if _, err := d.cardChanged(ctx, day, "sub_16"); err != nil {
		return err
	}
	return d.books(day, daybook.Say("402 is permanent → dead letter, alert in alerts.log → card changed → replay: same key, new wire key, charged"))
}

// withoutKeys is the second act as plain cron, a platform and a person would play it: each runs the whole job.
func (d *demo) withoutKeys(ctx context.Context, day string) error {
	d.title(day, "Trigger three times, without keys")
	for range 3 {
		if err := d.post(ctx, d.shopAt, "/renew-all?date="+day, ""); err != nil {
			return err
		}
	}
	t, err := gateway.Count(d.book())
	if err != nil {
		return err
	}
	d.closing(false, daybook.Say("cron → charged    platform retry → charged    you, clicking → charged"), daybook.Say("due %d, charged %d, twice %d", demoDue, t.Charges, t.Twice))
	return d.line("%d charges for %d due. With keys: daybook demo", t.Charges, demoDue)
}

// killWhileCharged plays a day as far as a charge that is booked and not answered, and kills serve.
func (d *demo) killWhileCharged(ctx context.Context, day, sub string) error {
	at := "02:00:01"
	if day == demoDays[0] {
		at = "03:00:01"
	}
	if err := errors.Join(d.jump(day, "01:59:50"), d.runTo(day, at)); err != nil {
		return err
	}
	if err := d.isCharged(ctx, day, sub); err != nil {
		return err
	}
	return d.killServe(ctx, day, sub, at[:len(at)-1]+"5")
}

// killWhileExtended kills serve when a subscription is charged, and known to be, and not extended.
func (d *demo) killWhileExtended(ctx context.Context, day, sub string) error {
	if err := d.until(ctx, daybook.Say("a charge of %s", sub), func() (bool, error) {
		r, err := d.ledger.Control().Run(ctx, demoKey(day, sub))
		if err != nil {
			return false, err
		}
		charge := r.StepRecord("charge")
		return charge != nil && charge.State == daybook.EffectDone && r.State == daybook.Running, nil
	}); err != nil {
		return err
	}
	return d.killServe(ctx, day, sub, "02:00:40")
}

// extendedLater waits until a renewal is done whose charge was known to be done when its worker was lost: nobody was asked.
func (d *demo) extendedLater(ctx context.Context, day, sub string) error {
	r, err := d.ends(ctx, day, sub, daybook.Done)
	if err != nil {
		return err
	}
	attempts, err := d.ledger.Control().Attempts(ctx, r.Key)
	charge := r.StepRecord("charge")
	asked := slices.ContainsFunc(attempts, func(a daybook.Attempt) bool { return a.Probe })
	if err == nil && (asked || charge == nil || charge.Tries != 1 || r.Attempts != 2) {
		err = daybook.New(daybook.CodeInternal, "%s was not just extended", r.Key)
	}
	return err
}

// through lets the hours pass that a renewal waits, until it is done, and returns what tells its wire keys apart, as the
// gateway saw them: two tries that it never heard of, and one that it charged.
func (d *demo) through(ctx context.Context, day, sub string) (tries []string, err error) {
	for state := daybook.Running; state != daybook.Done; {
		if err := d.until(ctx, daybook.Say("%s goes on", sub), func() (bool, error) {
			r, err := d.ledger.Control().Run(ctx, demoKey(day, sub))
			if err != nil {
				return false, err
			}
			state = r.State
			if state == daybook.Retryable && r.Due.After(d.clock.Now()) {
				return true, d.clock.write(r.Due, r.Due)
			}
			return state == daybook.Done, nil
		}); err != nil {
			return nil, err
		}
	}
	lines, err := gateway.ReadBook(d.book())
	for _, l := range lines {
		if l.Kind == gateway.KindRequest && l.Day == day && l.Customer == sub {
			tries = append(tries, strings.TrimPrefix(l.Key, string(demoKey(day, sub))))
		}
	}
	if err == nil && !slices.Equal(tries, []string{"#charge", "#charge@2", "#charge@3"}) {
		err = daybook.New(daybook.CodeInternal, "%s was asked for under %s", demoKey(day, sub), daybook.Words(tries))
	}
	return tries, err
}

// killServe kills serve at a time of the clock, while it has the lease of a run as it was renewed then.
func (d *demo) killServe(ctx context.Context, day, sub, at string) error {
	if err := d.runTo(day, at); err != nil {
		return err
	}
	until := d.instant(day, at).Add(30 * time.Second)
	if err := d.until(ctx, daybook.Say("the lease of %s is renewed", sub), func() (bool, error) {
		r, err := d.ledger.Control().Run(ctx, demoKey(day, sub))
		return err == nil && !r.Lease.Before(until), err
	}); err != nil {
		return err
	}
	d.server.kill()
	return nil
}

// settledByProbe waits until a subscription is renewed whose charge the gateway was asked for, and returns when it was.
func (d *demo) settledByProbe(ctx context.Context, day, sub string) (at time.Time, err error) {
	r, err := d.ends(ctx, day, sub, daybook.Done)
	if err != nil {
		return at, err
	}
	attempts, err := d.ledger.Control().Attempts(ctx, r.Key)
	for _, a := range attempts {
		if a.Probe && a.Result == daybook.Result(daybook.Yes) {
			at = a.EndedAt
		}
	}
	if charge := r.StepRecord("charge"); err == nil && (at.IsZero() || charge == nil || charge.WireKey() != string(r.Key)+"#charge") {
		err = daybook.New(daybook.CodeInternal, "%s: the probe did not settle it", r.Key)
	}
	return at, err
}

// cardChanged makes a card good, replays the dead letter and returns the wire key of the charge.
func (d *demo) cardChanged(ctx context.Context, day, sub string) (wire string, err error) {
	key := demoKey(day, sub)
	if err := d.card(ctx, sub, true); err != nil {
		return "", err
	}
	if err := d.answer(ctx, daybook.Started, "dead", "replay", string(key), "--reason", "card changed", "--yes", "--json"); err != nil {
		return "", err
	}
	r, err := d.ends(ctx, day, sub, daybook.Done)
	if err != nil {
		return "", err
	}
	if _, err := d.ends(ctx, day, "", daybook.Done); err != nil {
		return "", err
	}
	charge := r.StepRecord("charge")
	if charge == nil || charge.WireKey() != string(key)+"#charge@2" {
		return "", daybook.New(daybook.CodeInternal, "%s was not charged under a new wire key", key)
	}
	return charge.WireKey(), nil
}

// alerted waits until the channel of the demo has the alert about a dead letter: subjects of one day share it.
func (d *demo) alerted(ctx context.Context, day, sub string) error {
	return d.until(ctx, daybook.Say("the alert about %s", demoKey(day, sub)), func() (bool, error) {
		text, err := os.ReadFile(d.alerts())
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "[P0] "+string(demoKey(day, ""))) && strings.Contains(line, sub) {
				return true, nil
			}
		}
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return false, err
	})
}

// books closes an act with what the gateway's book says of its day.
func (d *demo) books(day string, told daybook.Text) error {
	t, err := gateway.Count(d.book())
	if err != nil {
		return err
	}
	charged, twice := 0, 0
	for who, n := range t.ByDay {
		if who.Day == day {
			charged += n
			twice += n - 1
		}
	}
	right := charged == demoDue && twice == 0
	d.closing(right, told, daybook.Say("gateway's book: due %d, charged %d, twice %d", demoDue, charged, twice),
		daybook.Say("due %d, charged %d, twice %d", demoDue, charged, twice), daybook.Say("twice %d", twice))
	if !right {
		return daybook.New(daybook.CodeInternal, "the gateway charged %d for %d due", charged, demoDue)
	}
	return nil
}

// done counts the renewals of a day that are done.
func (d *demo) done(ctx context.Context, day string) (n int) {
	runs, err := d.ledger.Control().Find(ctx, string(demoKey(day, "")), demoDue+1)
	if err != nil {
		return -1
	}
	for _, r := range runs {
		if r.Subject != "" && r.State == daybook.Done {
			n++
		}
	}
	return n
}

// scheduled returns the trigger by which the schedule asked for a day.
func (d *demo) scheduled(ctx context.Context, day string) (daybook.Trigger, error) {
	triggers, err := d.ledger.Store().Triggers(ctx, demoKey(day, ""))
	if err == nil && (len(triggers) == 0 || triggers[0].Source != daybook.SourceSchedule) {
		err = daybook.New(daybook.CodeInternal, "%s was not started by its schedule", demoKey(day, ""))
	}
	if err != nil {
		return daybook.Trigger{}, err
	}
	return triggers[0], nil
}

// isCharged waits until the gateway's book has a charge.
func (d *demo) isCharged(ctx context.Context, day, sub string) error {
	return d.until(ctx, daybook.Say("a charge of %s", sub), func() (bool, error) {
		lines, err := gateway.ReadBook(d.book())
		for _, l := range lines {
			if l.Kind == gateway.KindCharge && l.Status == gateway.Charged && l.Day == day && l.Customer == sub {
				return true, nil
			}
		}
		return false, err
	})
}

// What happens to the shop and its gateway.

func (d *demo) fault(ctx context.Context, text string) error {
	return d.post(ctx, d.gatewayAt, "/faults", text)
}

func (d *demo) noFaults(ctx context.Context) error {
	return d.call(ctx, http.MethodDelete, d.gatewayAt+"/faults", nil, nil, nil)
}

func (d *demo) card(ctx context.Context, sub string, ok bool) error {
	return d.post(ctx, d.gatewayAt, "/cards", fmt.Sprintf(`{"customer":%q,"ok":%t}`, sub, ok))
}

func (d *demo) hold(ctx context.Context, sub string) error {
	return d.post(ctx, d.shopAt, "/hold?subscription="+sub, "")
}
