package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
)

// onceFlags are what a crontab line says about its job.
type onceFlags struct {
	job, schedule, window, date, tz, effects, probe, remembers string
	timeout                                                    time.Duration
	noRetry                                                    bool
	server, tokenFile                                          string
}

func newOnce(a *app) *cobra.Command {
	var o onceFlags
	cmd := &cobra.Command{
		Use:     "once --job J [flags] -- COMMAND…",
		Short:   textOnce,
		Long:    textOnceLong,
		Example: textOnceExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			code, err := a.once(cmd.Context(), o, args)
			switch {
			case err != nil:
				a.flags.json = true
				return &coded{code: daybook.ExitDaybook, err: err}
			case code != 0:
				return &coded{code: code, err: errors.New("told already"), silent: true}
			}
			return nil
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { // 2 would be the code of the command
		a.flags.json = true
		return &coded{code: daybook.ExitDaybook, err: flagError(cmd, err)}
	})
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.job, "job", "", "name of the job (required)")
	f.StringVar(&o.schedule, "schedule", "", "when the line runs, so that a late cron keeps its key")
	f.StringVar(&o.window, "window", "", "kind of window, such as day or previous-week (default: by the schedule); alone it takes the wall date")
	f.StringVar(&o.date, "date", "", "business date, YYYY-MM-DD (default: that of the latest fire already past)")
	f.StringVar(&o.tz, "tz", "", "IANA time zone; required unless the file defines the job")
	f.StringVar(&o.effects, "effects", "", "once or repeatable (default repeatable)")
	f.StringVar(&o.probe, "probe", "", "command that asks whether it happened: exit 0 yes, 1 no, else cannot tell")
	f.StringVar(&o.remembers, "remembers", "", "how long the far side answers a repeated key: 24h, forever")
	f.DurationVar(&o.timeout, "timeout", 0, "end the command after this time (default 1h)")
	f.StringVar(&o.server, "server", "", "address of a serve that keeps the ledger, instead of a file: http://127.0.0.1:7070")
	f.StringVar(&o.tokenFile, "token-file", "", "file with the token for it, of role act")
	f.BoolVar(&o.noRetry, "no-retry", false, "do not wait for the next try: exit 75")
	_ = cmd.RegisterFlagCompletionFunc("window", value(texts(daybook.WindowKinds)...)) // the flag is there
	return cmd
}

// once runs a command under the key of its window and returns the code to exit with.
func (a *app) once(ctx context.Context, o onceFlags, argv []string) (int, error) {
	switch {
	case o.job == "":
		return 0, daybook.Invalid("once: --job is missing").WithHint("daybook once --job NAME --schedule \"0 2 * * *\" --tz ZONE -- COMMAND")
	case len(argv) == 0:
		return 0, daybook.Invalid("once: the command is missing").WithHint("it stands behind --")
	case o.server != "" && a.flags.db != "":
		return 0, daybook.Invalid("once: both --server and --db are given").WithHint("the ledger is kept by a server, or it is this one: give one of them")
	}
	if a.flags.db == "" {
		r, err := a.remoteOf(o.server, o.tokenFile)
		if err != nil {
			return 0, err
		}
		if r != nil {
			f, err := a.fileIfAny()
			if err != nil {
				r.client.Close()
				return 0, err
			}
			return a.onceRemote(ctx, r, f, o, argv)
		}
	}
	f, err := a.fileIfAny()
	if err != nil {
		return 0, err
	}
	text, err := a.onceURL(f)
	if err != nil {
		return 0, err
	}
	l, err := a.openAt(ctx, "once", text, f, true)
	if err != nil {
		return 0, err
	}
	code, err := a.onceOn(ctx, l, o, argv)
	return code, errors.Join(err, l.Close())
}

// onceURL is the ledger of a call: as for other commands, else the user's own.
func (a *app) onceURL(f *config.File) (string, error) {
	env, _ := a.LookupEnv("DAYBOOK_DB")
	if f == nil && a.flags.db == "" && env == "" {
		if server, _ := a.LookupEnv("DAYBOOK_SERVER"); server != "" && a.insideAttempt() {
			return "", daybook.Invalid("once: it stands in a job whose steps are kept by %s, and nothing names the ledger of this line", server).
				WithHint("name it: --server with --token-file, or --db")
		}
		return "sqlite:" + onceLedger(), nil
	}
	return a.databaseURL(f)
}

// onceLedger is the file of the user's own ledger, which once uses when nothing names one.
func onceLedger() string { return filepath.Join(stateDir(), "daybook.db") }

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func (a *app) onceOn(ctx context.Context, l *ledger, o onceFlags, argv []string) (int, error) {
	request, err := a.onceRequest(ctx, l, o, argv)
	if err != nil {
		return 0, err
	}
	var end lineEnd
	if err := l.Instead(o.job, argv, func(out daybook.Outcome) { end.exit, end.ran = out.Exit, true }); err != nil {
		return 0, err
	}
	waits := a.waiting
	if o.noRetry {
		waits = nil
	}
	answer, r, err := l.Foreground(ctx, a.person(), request, waits)
	switch {
	case err != nil:
		return 0, err
	case answer.Outcome == daybook.Refused:
		return 0, daybook.Conflict("%s", answer.Text()).WithHint("%s", a.onLedger(l, answer.Next()))
	case answer.Outcome == daybook.Reused:
		a.say("%s", answer.Text())
		return answer.Exit, nil
	}
	if r.Node != "" && r.Node != l.Node().ID {
		if end.doer, err = l.Control().Doer(ctx, r.Node); err != nil {
			return 0, err
		}
	}
	switch stuck, err := l.Control().Stuck(context.WithoutCancel(ctx), r); {
	case err != nil:
		return 0, err
	case stuck != nil:
		return 0, a.lineStuck(r, stuck)
	}
	return a.onceEnded(l, r, end)
}

// lineStuck is the error of a line that does not wait, since only a person lets its run go on.
func (a *app) lineStuck(r *daybook.Run, o *control.Obstacle) error {
	return daybook.Conflict("%s", o.ForPerson(r)).WithHint("%s; then start this line again", o.Do)
}

// ledgerFlags are the flags of this call that name the ledger, and a space.
func (a *app) ledgerFlags() string {
	if a.flags.db != "" {
		return "--db " + shellWord(config.Mask(a.flags.db)) + " "
	}
	if a.flags.config != "" {
		return "-c " + shellWord(a.flags.config) + " "
	}
	return ""
}

// onLedger names the ledger in a command to type next: one that a file names is found without, the others are not.
func (a *app) onLedger(l *ledger, command string) string {
	rest, ours := strings.CutPrefix(command, "daybook ")
	if !ours || l == nil { // a server keeps it
		return command
	}
	if flags := a.ledgerFlags(); flags != "" {
		return "daybook " + flags + rest
	}
	if env, _ := a.LookupEnv("DAYBOOK_DB"); env != "" || l.file != nil {
		return command
	}
	return "daybook --db " + shellWord(config.Mask(l.url)) + " " + rest
}

// frozen says until when a freeze holds a run, if one does.
func (a *app) frozen(r *daybook.Run) bool {
	if r.HeldAt(a.Now()) != daybook.ReasonFrozen {
		return false
	}
	a.say("%s  is frozen until %s; its next start is at %s", r.Key, stamp(r.FrozenUntil, a.zoneOf(r.Zone)), stamp(r.Due, a.zoneOf(r.Zone)))
	a.next("daybook " + a.ledgerFlags() + "freeze list")
	return true
}

// waiting says for what a run waits.
func (a *app) waiting(r *daybook.Run) {
	switch now, until := a.Now(), stamp(r.Due, a.zoneOf(r.Zone)); {
	case a.frozen(r):
	case r.HeldAt(now) != "":
		a.say("%s  is held: %s", r.Key, r.Hold)
		a.next("daybook " + a.ledgerFlags() + "run show " + string(r.Key))
	case r.Reason == daybook.ReasonSettling:
		a.say("%s  whether attempt %d happened is asked for, next at %s", r.Key, r.Attempts, until)
	case !r.Due.After(now):
		a.say("%s  waits: another run of its job is under way, or comes before it", r.Key)
	case r.LastError == "":
		a.say("%s  waits until %s", r.Key, until)
	default:
		a.say("%s  attempt %d: %s; next try at %s", r.Key, r.Attempts, a.stored(oneLine(r.LastError), r.Zone), until)
	}
}

// notYet says of a run that this line leaves to whoever claims it next why it is not over.
func (a *app) notYet(r *daybook.Run) {
	switch now := a.Now(); {
	case r.HeldAt(now) == "" && r.Reason == daybook.ReasonInterrupted:
		a.say("%s  was interrupted, and is not done: whoever claims it next goes on with it", r.Key)
	case r.HeldAt(now) == "" && r.Reason != daybook.ReasonSettling && r.LastError != "":
		a.say("%s  %s; the next try is due %s", r.Key, a.stored(oneLine(r.LastError), r.Zone), stamp(r.Due, a.zoneOf(r.Zone)))
	default:
		a.waiting(r)
	}
}

// lineEnd is what came of a line.
type lineEnd struct {
	exit int          // of its command, the last time it ran
	ran  bool         // it did
	doer daybook.Text // who made the newest attempt, when that was not this line
}

// onceEnded says how the run stands, and who did it when that was not this line, and returns the code to exit with.
func (a *app) onceEnded(l *ledger, r *daybook.Run, end lineEnd) (int, error) {
	if other := !end.doer.IsZero() && !r.State.Live(); other && end.ran {
		a.say("%s  attempt %d was made by %s", r.Key, r.Attempts, end.doer)
	} else if other {
		a.say("%s  attempt %d was made by %s: the command of this line was not run", r.Key, r.Attempts, end.doer)
	}
	exit := end.exit
	switch {
	case r.State == daybook.Done:
		return daybook.ExitOK, nil
	case r.State == daybook.Running && end.doer.IsZero():
		a.say("%s  is running elsewhere, attempt %d", r.Key, r.Attempts)
		return daybook.ExitElsewhere, nil
	case r.State == daybook.Running:
		a.say("%s  is running elsewhere: attempt %d, by %s", r.Key, r.Attempts, end.doer)
		return daybook.ExitElsewhere, nil
	case r.State.Live():
		a.notYet(r)
		return daybook.ExitElsewhere, nil
	}
	standing := daybook.Say("%s", r.State)
	if r.Letter != nil && r.Letter.Kind == daybook.LetterUnknown {
		standing = daybook.Say("%s, and whether it happened is unknown", r.State)
	}
	a.say("%s  %s: %s", r.Key, standing, a.stored(r.LastError, r.Zone))
	if r.State == daybook.Dead {
		a.next(a.onLedger(l, "daybook dead show "+string(r.Key)))
	}
	if exit == 0 {
		exit = daybook.ExitFailed
	}
	return exit, nil
}

// onceRequest turns the flags into a request, and defines the job where no file does.
func (a *app) onceRequest(ctx context.Context, l *ledger, o onceFlags, argv []string) (control.Request, error) {
	request := control.Request{Job: o.job, Source: daybook.SourceOnce, Date: o.date}
	defined, err := a.definedJob(ctx, l, o.job)
	if err != nil {
		return request, err
	}
	if defined != nil {
		if err := a.mayMakeKnown(ctx, l, o.job); err != nil {
			return request, err
		}
		return request, o.sameAs(defined)
	}
	j, schedule, err := o.define(a.person().Name, argv)
	if err != nil {
		return request, err
	}
	if err := l.Define(engine.Definition{Job: j}); err != nil {
		return request, err
	}
	request.Define = &j
	switch {
	case o.date != "":
		w, err := schedule.OfDate(o.date)
		if err != nil {
			return request, err
		}
		request.Date, request.Window = "", w.Label
	case o.schedule == "":
		request.Window = schedule.Current(a.Now()).Label
	}
	return request, nil
}

// definedJob returns the definition that a file brings, or brought to this ledger; nil when none did.
func (a *app) definedJob(ctx context.Context, l *ledger, name string) (*daybook.Job, error) {
	if l.file != nil {
		if j, err := l.file.Find(name); err == nil {
			return &j.Job, nil
		}
	}
	st, ok, err := l.Store().JobState(ctx, name)
	if err != nil || !ok || st.Home == daybook.HomeOnce || !st.RetiredAt.IsZero() {
		return nil, err
	}
	j, err := daybook.JobFromCanonical(st.Definition)
	if err != nil {
		return nil, err
	}
	return &j, l.Define(engine.Definition{Job: j})
}

// sameAs refuses flags that say otherwise than the definition: its schedule, window and policies are the file's.
func (o onceFlags) sameAs(j *daybook.Job) error {
	if j.Fans() {
		return daybook.Conflict("job %s is done for each of its subjects, which a serve lists: no line does it as a whole", j.Name).
			WithHint("daybook job trigger %s", j.Name)
	}
	for _, f := range []struct{ flag, got, want string }{
		{"--schedule", o.schedule, j.Schedule}, {"--window", o.window, string(j.Window)}, {"--tz", o.tz, j.Timezone}, {"--effects", o.effects, string(j.Effects)},
	} {
		if f.got != "" && f.got != f.want {
			return daybook.Invalid("job %s is defined by a file: %s %s is not its %s", j.Name, f.flag, f.got, f.want).WithHint("leave %s out", f.flag)
		}
	}
	if o.probe != "" || o.remembers != "" || o.timeout != 0 {
		return daybook.Invalid("job %s is defined by a file: --probe, --remembers and --timeout are the file's", j.Name).WithHint("leave them out")
	}
	return nil
}

// define makes the definition of a job that no file defines.
func (o onceFlags) define(owner string, argv []string) (daybook.Job, *calendar.Schedule, error) {
	j := daybook.Job{Name: o.job, Owner: owner, Schedule: o.schedule, Timezone: o.tz, Window: daybook.WindowKind(o.window), Effects: daybook.Effects(o.effects),
		Timeout: o.timeout, Command: daybook.Command{Argv: argv}}
	if o.tz == "" {
		return j, nil, daybook.Invalid("once: --tz is missing").WithHint("such as --tz Europe/Berlin: nothing falls back to this machine's zone")
	}
	if o.schedule == "" && o.window == "" {
		if o.date == "" {
			return j, nil, daybook.Invalid("once: nothing says which window the line answers for").
				WithHint("give --schedule \"0 2 * * *\", or --window day, or --date 2026-10-26")
		}
		j.Window = daybook.Day
	}
	if o.probe != "" {
		j.Probe = daybook.Command{Shell: o.probe}
	}
	var err error
	if j.Remembers, err = remembers(o.remembers); err != nil {
		return j, nil, err
	}
	if j.Effects == daybook.Once && j.Window == "" {
		_, schedule, err := calendar.Complete(j, nil)
		if err != nil {
			return j, nil, err
		}
		j.Window = schedule.Window()
	}
	whole, schedule, err := calendar.Complete(j, nil)
	if err != nil {
		return j, nil, err
	}
	for _, fault := range whole.Check() {
		return j, nil, fault.Err
	}
	return j, schedule, nil
}

func remembers(text string) (time.Duration, error) {
	if strings.EqualFold(text, "forever") {
		return daybook.Forever, nil
	}
	if text == "" {
		return 0, nil
	}
	d, err := config.ParseDuration(text)
	if err != nil {
		return 0, flagged("--remembers", err)
	}
	return time.Duration(d), nil
}
