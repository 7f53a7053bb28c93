package main

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/alert"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/postgres"
)

// ledger is an opened ledger with the engine on it.
type ledger struct {
	*engine.Engine
	db   engine.DB
	file *config.File // nil: none was read
	url  string

	listening *sql.DB // nil: nothing is heard
}

// Close closes the engine and the handles.
func (l *ledger) Close() error {
	var heard error
	if l.listening != nil {
		heard = l.listening.Close()
	}
	return errors.Join(l.Engine.Close(), heard, l.db.Read.Close(), closeOther(l.db))
}

func closeOther(db engine.DB) error {
	if db.Write == db.Read {
		return nil
	}
	return db.Write.Close()
}

// person is who acts by the command line.
func (a *app) person() control.Person {
	name, _ := a.LookupEnv("USER")
	if u, err := user.Current(); name == "" && err == nil {
		name = u.Username
	}
	if name == "" {
		name = "unknown"
	}
	return control.Person{Name: name}
}

// open opens the ledger that the call names: --db, DAYBOOK_DB, or the file's. The file is read when it is there, or was
// named. Commands other than serve, once and db migrate do not make a ledger or change its schema.
func (a *app) open(ctx context.Context, role string, make bool) (*ledger, error) {
	f, err := a.fileIfAny()
	var faults config.Errors
	if role == "cli" && errors.As(err, &faults) {
		return a.openBeside(ctx, role, err)
	}
	if err != nil {
		return nil, err
	}
	text, err := a.databaseURL(f)
	if err != nil {
		return nil, err
	}
	return a.openAt(ctx, role, text, f, make)
}

// openBeside opens the ledger of a file that has faults for a command that only reads; it is told that the file was left aside.
// Any other ends with the faults, and is told how the ledger is reached meanwhile: a serve goes on with the file it loaded.
func (a *app) openBeside(ctx context.Context, role string, faults error) (*ledger, error) {
	path := a.configPath()
	text, err := a.ReadFile(path)
	if err != nil {
		return nil, faults
	}
	place := config.PlaceOf(path, text)
	at, err := a.databaseURL(place)
	if err != nil {
		return nil, faults
	}
	if path, lite := strings.CutPrefix(at, "sqlite:"); lite && !isFile(path) {
		return nil, faults // where it is, the file does not say any more
	}
	if !a.reads {
		shown := config.Mask(at)
		if place.Database.IsReference() && a.flags.db == "" {
			shown = place.Database.String()
		}
		a.say("a serve that runs goes on with the file that it loaded; until this one is mended: --db %s", shown)
		return nil, faults
	}
	a.say("%s has faults and is left aside: daybook check; a serve that runs goes on with the file that it loaded", path)
	a.fileZone = place.Timezone
	return a.openAt(ctx, role, at, nil, false)
}

// fileIfAny reads the configuration: nil when none is there and none was named. One that has faults does not stand in the
// way of looking into a ledger that is named.
func (a *app) fileIfAny() (*config.File, error) {
	_, named := a.LookupEnv("DAYBOOK_CONFIG")
	if a.flags.config == "" && !named {
		if _, err := os.Stat(config.DefaultPath); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	f, err := config.Load(a.configPath())
	var faults config.Errors
	if env, _ := a.LookupEnv("DAYBOOK_DB"); errors.As(err, &faults) && a.flags.config == "" && !named && (a.flags.db != "" || env != "") {
		a.say("%s has faults and is left aside: daybook check", config.DefaultPath)
		return nil, nil
	}
	return f, err
}

func (a *app) openAt(ctx context.Context, role, text string, f *config.File, make bool) (*ledger, error) {
	var told alert.Options
	if f != nil {
		a.fileZone = f.Timezone
		var err error
		if told, err = a.alerts(f, role == "serve"); err != nil {
			return nil, err
		}
	}
	db, err := openDB(text, make)
	if err != nil {
		return nil, err
	}
	number, _ := build()
	o := engine.Options{Version: number, Role: role, Dir: attemptDir(text), WitnessDir: witnessDir(), NoMigrate: !make, Lease: a.lease, Log: a.logger(), Now: a.Now, Exec: a.Exec, UserDB: openUserDB, Alerts: told, URL: a.url, LocalURL: a.localURL, Ledger: a.ledgerForChildren(f, text)}
	if f != nil {
		o.Slots, o.Retention = slotsOf(f), retentionOf(f)
		o.Freezes, o.Zone = f.Freezes, f.Timezone
		o.Days = a.daysOf(f)
	}
	if a.moved != nil {
		o.ByHand, o.Pace, o.Boot = true, demoPace, a.moved.Boot
	}
	if role == "once" {
		o.Slots, o.Exec.Tee = map[daybook.Lane]int{}, a.Stdout
	}
	var listening *sql.DB
	if role == "serve" && databaseKind(text) == "postgres" {
		if listening, err = openPostgres(text); err != nil {
			return nil, errors.Join(err, db.Read.Close(), closeOther(db))
		}
		o.Listener = postgres.NewListener(listening)
	}
	e, err := engine.Open(ctx, db, o)
	if err != nil {
		return nil, errors.Join(whatToDo(err), db.Read.Close(), closeOther(db))
	}
	l := &ledger{Engine: e, db: db, listening: listening, file: f, url: text}
	if f != nil {
		if err := e.Define(definitions(f, a.vault())...); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

func slotsOf(f *config.File) map[daybook.Lane]int {
	return map[daybook.Lane]int{daybook.LaneLive: f.Slots.Live, daybook.LaneBackfill: f.Slots.Backfill}
}

func retentionOf(f *config.File) daybook.Retention {
	return daybook.Retention{Log: f.Retention.Log, LogRuns: f.Retention.LogRuns}
}

// whatToDo adds to an error of the ledger what can be done about it. Drivers name their results in texts only.
func whatToDo(err error) error {
	if daybook.CodeOf(err) != daybook.CodeUnavailable || daybook.HintOf(err) != "" {
		return err
	}
	for _, w := range ledgerWords {
		if strings.Contains(err.Error(), w.part) {
			return daybook.New(daybook.CodeUnavailable, "").Because(err).WithHint("%s", w.do)
		}
	}
	return err
}

// ledgerWords is what can be done about what drivers say. The first match counts.
var ledgerWords = []struct {
	part string
	do   daybook.Text
}{
	{"disk is full", noSpaceDo}, {"no space left", noSpaceDo}, {"No space left", noSpaceDo},
	{"disk I/O error (4874)", noSpaceDo}, // no room for what SQLite keeps beside the file
	{"readonly database", readOnlyDo}, {"read-only file system", readOnlyDo},
	{"unable to open database file", rightsDo}, {"permission denied", rightsDo},
	{"disk I/O error", faultyDo},
	{"database is locked", daybook.Say("another program keeps it to itself for longer than 5 s: a backup tool, or a shell with a transaction open")},
	{"is malformed", damagedDo}, {"not a database", damagedDo},
	{"unsupported startup parameter", daybook.Say("the pooler in front of the database refuses a parameter of the URL: take it out, or name it in ignore_startup_parameters of the pooler")},
	{"connect", daybook.Say("is the server up, and is the URL right? --db, DAYBOOK_DB, or database: in the file")},
}

var (
	noSpaceDo  = daybook.Say("make room on the disk of the ledger: what was recorded is safe, and serve goes on by itself")
	faultyDo   = daybook.Say("the disk of the ledger fails: look at its room and at the log of the system; what was recorded is in the file")
	readOnlyDo = daybook.Say("the place is read-only: mount it for writing, or name another with --db; SQLite writes beside the file, too")
	rightsDo   = daybook.Say("the user that runs daybook needs to read and write the file and its folder")
	damagedDo  = daybook.Say("leave the file as it is for whoever looks into it, and work on a copy made by daybook db backup: --db sqlite:COPY")
)

func (a *app) daysOf(f *config.File) func(string) (*calendar.Days, error) {
	return func(name string) (*calendar.Days, error) {
		if name == "" {
			return nil, nil
		}
		if d, ok := calendar.Embedded(name); ok {
			return d, nil
		}
		text, err := a.ReadFile(f.Locate(name))
		if err != nil {
			return nil, daybook.Invalid("read the calendar %s", name).Because(err)
		}
		return calendar.ParseDays(name, text)
	}
}

// definitions are the jobs of a file, with the paths in it found from where the file lies.
func definitions(f *config.File, v config.Vault) []engine.Definition {
	list := make([]engine.Definition, 0, len(f.Jobs))
	for i := range f.Jobs {
		j := f.Jobs[i].Job
		if j.Dir != "" {
			j.Dir = f.Locate(j.Dir)
		} else {
			j.Dir = filepath.Dir(f.Path)
		}
		job := f.Jobs[i]
		list = append(list, engine.Definition{Job: j, Env: func() (map[string]string, error) { return job.Environment(v) },
			Listing: func() (daybook.Listing, error) { return f.Subjects(&job, v) }})
	}
	return list
}

// pragmas with which an acknowledged write survives a power cut, and writers wait for each other.
const pragmas = "_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_txlock=immediate"

// openDB opens handles on the database of a URL; make allows a SQLite file that is not there yet.
func openDB(text string, make bool) (engine.DB, error) {
	path, lite := strings.CutPrefix(text, "sqlite:")
	if !lite {
		db, err := openPostgres(text)
		return engine.DB{Write: db, Read: db}, err
	}
	if err := checkFile(path, make); err != nil {
		return engine.DB{}, err
	}
	source := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: pragmas}).String()
	write, err := sql.Open("sqlite", source)
	if err != nil {
		return engine.DB{}, daybook.New(daybook.CodeUnavailable, "open %s", path).Because(err)
	}
	read, err := sql.Open("sqlite", source)
	if err != nil {
		return engine.DB{}, errors.Join(daybook.New(daybook.CodeUnavailable, "open %s", path).Because(err), write.Close())
	}
	write.SetMaxOpenConns(1)
	read.SetMaxOpenConns(4)
	return engine.DB{Write: write, Read: read}, nil
}

// checkFile tells what SQLite would not tell well: a folder that is missing, a file that is missing where none may be
// made, a file that may not be written.
func checkFile(path string, make bool) error {
	if make {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return unwritable(daybook.New(daybook.CodeUnavailable, "make the folder of the ledger"), err)
		}
	}
	flags := os.O_RDWR
	if make {
		flags |= os.O_CREATE // an empty file is an empty database, and the reason why there can be none is told better here
	}
	file, err := os.OpenFile(path, flags, 0o644)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return daybook.New(daybook.CodeUnavailable, "there is no ledger at %s", path).
			WithHint("daybook serve makes it; or name another with --db or -c")
	case err != nil:
		return unwritable(daybook.New(daybook.CodeUnavailable, "the ledger cannot be written"), err)
	}
	return file.Close()
}

// unwritable adds to an error of the file of a ledger why it cannot be written, and what to do about it.
func unwritable(e *daybook.Error, cause error) error {
	do := rightsDo
	switch {
	case errors.Is(cause, syscall.ENOSPC), errors.Is(cause, syscall.EDQUOT):
		do = noSpaceDo
	case errors.Is(cause, syscall.EROFS):
		do = readOnlyDo
	}
	return e.Because(cause).WithHint("%s", do)
}

// attemptDir is where the attempts of a ledger keep what outlives a crash, on this host. It is the same however the ledger is
// named: what one process left alive is found by the next.
func attemptDir(text string) string {
	if path, lite := strings.CutPrefix(text, "sqlite:"); lite {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		return path + "-run"
	}
	place, err := postgresPlace(text)
	if err != nil {
		return "" // nor can it be opened
	}
	return filepath.Join(stateDir(), "run", strings.NewReplacer("/", "_", ":", "_", " ", "_").Replace(place))
}

// witnessDir is where this host keeps how far ledgers had come.
func witnessDir() string { return filepath.Join(stateDir(), "witness") }

// stateDir is the user's folder for state, as the XDG base directory specification has it.
func stateDir() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "daybook")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir()
	}
	return filepath.Join(home, ".local", "state", "daybook")
}

// logger writes to stderr: warnings and worse, or everything with --verbose; JSON where --json is asked for.
func (a *app) logger() *slog.Logger {
	level := slog.LevelWarn
	switch {
	case a.flags.verbose:
		level = slog.LevelDebug
	case a.flags.quiet:
		level = slog.LevelError
	}
	o := &slog.HandlerOptions{Level: level}
	if a.flags.json {
		return slog.New(slog.NewJSONHandler(a.Stderr, o))
	}
	return slog.New(slog.NewTextHandler(a.Stderr, o))
}

// waitWhile waits as long as busy says so, looking every so often. False: ctx ended first.
func waitWhile(ctx context.Context, every time.Duration, busy func() (bool, error)) (bool, error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		again, err := busy()
		if err != nil || !again {
			return true, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, nil
		}
	}
}

// ledgerForChildren is how a command of a job names the ledger: by the reference that this program was given, if it was one,
// so that no secret stands in an environment.
func (a *app) ledgerForChildren(f *config.File, url string) string {
	text := a.flags.db
	if env, _ := a.LookupEnv("DAYBOOK_DB"); text == "" {
		text = env
	}
	given := config.NewSecret(text)
	if text == "" && f != nil {
		given = f.Database
	}
	if given.IsReference() {
		return given.String()
	}
	return url
}
