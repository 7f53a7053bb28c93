package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/alert"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/internal/notice"
)

func newAlert(a *app) *cobra.Command {
	return noun("alert", textAlert, newAlertList(a), newAlertAck(a), newAlertTest(a), newAlertMute(a))
}

// alertJSON is daybook/alert.v1.
type alertJSON struct {
	Schema     string            `json:"schema"`
	ID         string            `json:"id"`
	Kind       daybook.AlertKind `json:"kind"`
	Priority   daybook.Priority  `json:"priority"`
	Job        string            `json:"job"`
	Key        daybook.Key       `json:"key,omitempty"`
	Error      string            `json:"error,omitempty"`
	LastGood   string            `json:"last_good,omitempty"`
	Opened     time.Time         `json:"opened"`
	Closed     time.Time         `json:"closed,omitzero"`
	Told       time.Time         `json:"told,omitzero"`
	Times      int               `json:"times"`
	Channels   []string          `json:"channels"`
	Acked      time.Time         `json:"acked,omitzero"`
	AckedBy    string            `json:"acked_by,omitempty"`
	Reason     string            `json:"reason,omitempty"`
	MutedUntil time.Time         `json:"muted_until,omitzero"`
}

func newAlertJSON(r notice.Row) alertJSON {
	return alertJSON{Schema: "daybook/alert.v1", ID: r.ID(), Kind: r.Kind, Priority: r.Priority, Job: r.Job, Key: r.Key, Error: r.LastError, LastGood: r.LastGood,
		Opened: r.At, Closed: r.ClosedAt, Told: r.ToldAt, Times: r.Round, Channels: append([]string{}, r.Reached...), Acked: r.AckedAt, AckedBy: r.AckedBy,
		Reason: r.AckNote, MutedUntil: r.MutedUntil}
}

func newAlertList(a *app) *cobra.Command {
	var all bool
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: textAlertList, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > 1000 {
				return daybook.Invalid("--limit %d: 1 to 1000", limit)
			}
			return a.alertList(cmd.Context(), all, limit)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also those that are over, the newest first")
	cmd.Flags().IntVar(&limit, "limit", 1000, "at most so many, 1,000 at the most")
	return cmd
}

func (a *app) alertList(ctx context.Context, all bool, limit int) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		rows, err := c.Alerts(ctx, !all, limit)
		if err != nil {
			return err
		}
		zones, err := jobZones(ctx, c)
		if err != nil {
			return err
		}
		g := &grid{tail: true, head: []string{"ID", "SINCE", "PRIORITY", "KIND", "ABOUT", "TOLD", "STATE", "ERROR"}}
		for _, r := range rows {
			if a.flags.json {
				if err := a.printJSON(newAlertJSON(r)); err != nil {
					return err
				}
				continue
			}
			told := daybook.Say("%s", strings.Join(r.Reached, " "))
			if len(r.Reached) == 0 {
				told = daybook.Say("nobody")
			}
			g.add(r.ID(), a.moment(r.At, zones[r.Job]), string(r.Priority), daybook.Say("%s", r.Kind), cmp.Or(string(r.Key), r.Job), told, a.alertState(r),
				daybook.Say("%s ", a.stored(cmp.Or(r.LastError, r.LastGood), zones[r.Job])))
		}
		if err := a.print(g); err != nil {
			return err
		}
		mutes, err := c.Mutes(ctx)
		if err != nil {
			return err
		}
		for _, m := range mutes {
			a.say("alerts of %s are muted until %s by %s: %s", m.Job, stamp(m.Until, a.zoneOf(zones[m.Job])), oneLine(m.By), oneLine(m.Note))
		}
		switch {
		case len(rows) == 0:
			a.say("no alert is open")
		case len(rows) == limit:
			a.say("there may be more: --limit N")
		case !all && rows[0].AckedAt.IsZero():
			a.next("daybook alert ack " + rows[0].ID())
		}
		return nil
	})
}

func (a *app) alertState(r notice.Row) daybook.Text {
	switch {
	case !r.ClosedAt.IsZero():
		return daybook.Say("over")
	case !r.AckedAt.IsZero():
		return daybook.Say("acked by %s", oneLine(r.AckedBy))
	case r.MutedUntil.After(a.Now()):
		return daybook.Say("muted")
	}
	return daybook.Say("open")
}

// ackJSON is daybook/alert-ack.v1.
type ackJSON struct {
	Schema  string    `json:"schema"`
	Changed bool      `json:"changed"`
	Message string    `json:"message"`
	DryRun  bool      `json:"dry_run,omitempty"`
	Alert   alertJSON `json:"alert"`
}

func newAlertAck(a *app) *cobra.Command {
	var note string
	var dry bool
	cmd := &cobra.Command{
		Use: "ack ID", Short: textAlertAck, Long: textAlertAckLong, Args: exactly("ID"),
		ValidArgsFunction: a.completing(false, func(ctx context.Context, c *control.Control, _ string) ([]string, error) {
			rows, err := c.Alerts(ctx, true, completeMost)
			var ids []string
			for _, r := range rows {
				ids = append(ids, r.ID())
			}
			return ids, err
		}),
		RunE: func(cmd *cobra.Command, args []string) error { return a.alertAck(cmd.Context(), args[0], note, dry) },
	}
	cmd.Flags().StringVar(&note, "reason", "", "a sentence for whoever reads the record later")
	writing(cmd, &dry)
	return cmd
}

func (a *app) alertAck(ctx context.Context, id, note string, dry bool) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		change, err := a.ack(ctx, c, id, note, dry)
		if err != nil {
			return err
		}
		r := change.Alert
		message := daybook.Say("%s is acknowledged: it is not repeated; its end will be told.", r.ID())
		switch {
		case !change.Changed && !r.AckedAt.IsZero():
			message = daybook.Say("%s was acknowledged already, by %s.", r.ID(), oneLine(r.AckedBy))
		case !change.Changed:
			message = daybook.Say("%s is over: there is nothing to acknowledge.", r.ID())
		case !r.ClosedAt.IsZero():
			message = daybook.Say("%s is acknowledged, and over with that.", r.ID())
		}
		if a.flags.json {
			return a.printJSON(ackJSON{"daybook/alert-ack.v1", change.Changed, message.String(), dry, newAlertJSON(r)})
		}
		if err := a.line("%s", message); err != nil {
			return err
		}
		if dry {
			a.dryRun()
			return nil
		}
		if r.Key != "" && r.ClosedAt.IsZero() {
			a.next("daybook key show " + string(r.Key))
		}
		return nil
	})
}

// ack acknowledges an alert, or with dry only tells what would become of it.
func (a *app) ack(ctx context.Context, c *control.Control, id, note string, dry bool) (control.AckChange, error) {
	if !dry {
		return c.Ack(ctx, a.person(), id, note)
	}
	r, err := c.Alert(ctx, id)
	return control.AckChange{Alert: r, Changed: r.AckedAt.IsZero() && r.ClosedAt.IsZero()}, err
}

// muteJSON is daybook/alert-mute.v1.
type muteJSON struct {
	Schema  string    `json:"schema"`
	Job     string    `json:"job"`
	Until   time.Time `json:"until"`
	By      string    `json:"by"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	DryRun  bool      `json:"dry_run,omitempty"`
}

func newAlertMute(a *app) *cobra.Command {
	var length, note string
	var dry bool
	cmd := &cobra.Command{
		Use: "mute JOB --for 2h --reason R", Short: textAlertMute, Long: textAlertMuteLong, Args: exactly("JOB"), ValidArgsFunction: a.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if length == "" {
				return daybook.Invalid("a mute needs an end").WithHint("add --for, such as --for 2h")
			}
			d, err := config.ParseDuration(length)
			if err != nil {
				return flagged("--for", err)
			}
			if err := needReason(note, daybook.Say("a mute")); err != nil {
				return err
			}
			return a.alertMute(cmd.Context(), args[0], time.Duration(d), note, dry)
		},
	}
	cmd.Flags().StringVar(&length, "for", "", "how long: 90m, 26h, 7d; 0 ends the mute that holds")
	reasonFlag(cmd, &note)
	writing(cmd, &dry)
	return cmd
}

func (a *app) alertMute(ctx context.Context, job string, length time.Duration, note string, dry bool) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		v, err := c.Job(ctx, job)
		if err != nil {
			return err
		}
		m := notice.Mute{Job: job, Until: a.Now().Add(length), By: a.person().Name, Note: note}
		if !dry {
			if m, err = c.Mute(ctx, a.person(), job, length, note); err != nil {
				return err
			}
		}
		zone := ""
		if v.Job != nil {
			zone = v.Job.Timezone
		}
		message := daybook.Say("alerts of %s are not sent until %s; they stand open all the same: daybook alert list", job, stamp(m.Until, a.zoneOf(zone)))
		if length == 0 {
			message = daybook.Say("alerts of %s are sent again", job)
		}
		if a.flags.json {
			return a.printJSON(muteJSON{"daybook/alert-mute.v1", job, m.Until, m.By, m.Note, message.String(), dry})
		}
		if dry {
			defer a.dryRun()
		}
		return a.line("%s", message)
	})
}

// testedJSON is daybook/alert-test.v1.
type testedJSON struct {
	Schema  string `json:"schema"`
	Channel string `json:"channel"`
	Sent    bool   `json:"sent"`
	Error   string `json:"error,omitempty"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

func newAlertTest(a *app) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use: "test [CHANNEL]", Short: textAlertTest, Long: textAlertTestLong, Args: atMost(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []string
			if f, err := config.Load(a.configPath()); err == nil {
				names = channelNames(f)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.alertTest(cmd.Context(), args, dry)
		},
	}
	writing(cmd, &dry)
	return cmd
}

// alertTest sends a test on one channel of the file, or on each. It needs no ledger: a channel is tried before anything
// runs.
func (a *app) alertTest(ctx context.Context, names []string, dry bool) error {
	f, err := config.Load(a.configPath())
	if err != nil {
		return err
	}
	if len(f.Channels) == 0 {
		return daybook.NotFound("%s defines no channel", f.Path).WithHint("add channels: {log: {type: file, path: alerts.log}}, and alerts: {P0: {to: [log]}}")
	}
	if len(names) == 0 {
		names = channelNames(f)
	}
	failed := 0
	for _, name := range names {
		sent := a.testChannel(ctx, f, name, dry)
		if daybook.CodeOf(sent) == daybook.CodeNotFound {
			return sent
		}
		answer := testedJSON{Schema: "daybook/alert-test.v1", Channel: name, Sent: sent == nil && !dry, DryRun: dry}
		if sent != nil {
			failed++
			answer.Error = oneLine(sent.Error())
		}
		switch {
		case a.flags.json:
			err = a.printJSON(answer)
		case sent == nil && dry:
			err = a.line("%s: would be sent to", name)
		case sent == nil:
			err = a.line("%s %s: sent", a.mark("✓"), name)
		default:
			err = a.line("%s %s: not sent: %s", a.mark("✕"), name, sent)
			a.nextText(daybook.HintText(sent))
		}
		if err != nil {
			return err
		}
	}
	if dry {
		a.dryRun()
	}
	if failed > 0 {
		return &coded{code: 1, err: errors.New("told already"), silent: true}
	}
	return nil
}

// testChannel makes a channel and sends a test on it, or with dry only makes it.
func (a *app) testChannel(ctx context.Context, f *config.File, name string, dry bool) error {
	o := alert.Options{Name: installation(f), URL: f.URL, NewID: rand.Text}
	i := -1
	for at := range f.Channels {
		if f.Channels[at].Name == name {
			i = at
		}
	}
	if i < 0 {
		err := daybook.NotFound("there is no channel %q in %s", daybook.Clip(oneLine(name), 64), f.Path)
		if near := daybook.Nearest(name, channelNames(f)); near != "" {
			return err.WithHint("did you mean %s?", near)
		}
		return err.WithHint("there are: %s", strings.Join(channelNames(f), " "))
	}
	c, secrets, err := a.channel(f, &f.Channels[i])
	if err != nil || dry {
		return err
	}
	o.Channels, o.Secrets = []alert.Named{c}, func() []string { return secrets }
	return alert.New(nil, o).Test(ctx, name, a.Now())
}

func channelNames(f *config.File) []string {
	names := make([]string, len(f.Channels))
	for i, c := range f.Channels {
		names[i] = c.Name
	}
	return names
}

// installation is the name under which this one speaks.
func installation(f *config.File) string {
	host, err := os.Hostname()
	if err != nil {
		host = "daybook"
	}
	return cmp.Or(f.Name, host)
}

// channel makes a channel of the file, with its secrets.
func (a *app) channel(f *config.File, c *config.Channel) (alert.Named, []string, error) {
	s, secrets, err := f.Settings(c, a.vault())
	if err != nil {
		return alert.Named{}, nil, err
	}
	made, err := alert.NewChannel(s)
	return made, secrets, err
}

// alerts is what a file says of alerts. Channels are made, and their secrets looked up, only where they are needed.
func (a *app) alerts(f *config.File, sends bool) (alert.Options, error) {
	o := alert.Options{Routes: map[daybook.Priority]alert.Route{}, Fallback: f.Alerts.Fallback, Name: installation(f), URL: f.URL}
	for p, route := range f.Alerts.Routes {
		o.Routes[p] = route
	}
	if !sends {
		return o, nil
	}
	var all []string
	for i := range f.Channels {
		c, secrets, err := a.channel(f, &f.Channels[i])
		if err != nil {
			return o, err
		}
		o.Channels, all = append(o.Channels, c), append(all, secrets...)
	}
	o.Secrets = func() []string { return all }
	return o, nil
}
