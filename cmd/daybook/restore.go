package main

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
)

func newDBRestore(a *app) *cobra.Command {
	var dry, byHand bool
	var since, note string
	cmd := &cobra.Command{
		Use: "restore FILE", Short: textDBRestore, Long: textDBRestoreLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if byHand {
				return exactly()(cmd, args)
			}
			return exactly("FILE")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if byHand {
				return a.putBack(cmd.Context(), since, note, dry)
			}
			if since != "" || note != "" {
				return daybook.Invalid("--since and --reason are for --by-hand").WithHint("of a backup the ledger itself knows how far it goes")
			}
			return a.restore(cmd.Context(), args[0], dry)
		},
	}
	cmd.Flags().BoolVar(&byHand, "by-hand", false, textFlagByHand)
	cmd.Flags().StringVar(&since, "since", "", textFlagSinceBack)
	cmd.Flags().StringVar(&note, "reason", "", "why, for the record; with --by-hand")
	writing(cmd, &dry)
	return cmd
}

// restoreJSON is daybook/restore.v1.
type restoreJSON struct {
	Schema string    `json:"schema"`
	Ledger string    `json:"ledger"`
	File   string    `json:"file,omitempty"`
	Runs   int64     `json:"runs,omitempty"`
	Since  time.Time `json:"since"`
	Aside  string    `json:"aside,omitempty"`
	DryRun bool      `json:"dry_run,omitempty"`
}

// putBack says that the ledger was put back by the operator's own means.
func (a *app) putBack(ctx context.Context, since, note string, dry bool) error {
	if err := needReason(note, daybook.Say("a ledger that was put back")); err != nil {
		return err
	}
	var from time.Time
	if since != "" {
		var err error
		if from, err = instantFlag("--since", since); err != nil {
			return err
		}
	}
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		a.plan("this ledger was put back to an earlier state: what may happen once only is frozen until what is unknown is settled")
		if dry {
			a.dryRun()
			return nil
		}
		if err := a.proceed(daybook.Say("db restore")); err != nil {
			return err
		}
		l, err := c.PutBack(ctx, a.person(), from, note)
		if err != nil {
			return err
		}
		info, err := c.Info(ctx)
		if err != nil {
			return err
		}
		return a.tellRestored(restoreJSON{Ledger: info.ID, Since: l.Since})
	})
}

func (a *app) tellRestored(j restoreJSON) error {
	if a.flags.json {
		j.Schema = "daybook/restore.v1"
		return a.printJSON(j)
	}
	if j.Aside != "" {
		a.say("the file that was there is kept as %s", j.Aside)
	}
	err := a.line("ledger %s knows nothing of what happened after %s: what may happen once only is frozen.", j.Ledger, stamp(j.Since, a.zoneOf("")))
	a.next("daybook serve   (it asks the far sides about what was in the ledger; nothing is begun)")
	a.next("daybook status  (what is left to settle)")
	a.next("daybook freeze end restored --reason …")
	return err
}

// restore puts a backup in the place of a SQLite ledger. What is there is kept beside it, and the backup is told that it is one
// before it has the name: at no instant does a ledger stand there that does not know that it forgot.
func (a *app) restore(ctx context.Context, file string, dry bool) (err error) {
	text, err := a.ledgerURL()
	if err != nil {
		return err
	}
	path, lite := strings.CutPrefix(text, "sqlite:")
	if !lite {
		return daybook.Conflict("a PostgreSQL ledger is restored with PostgreSQL's own tools").
			WithHint("restore it, and before a serve is started say so: daybook db restore --by-hand --reason …")
	}
	j := restoreJSON{File: file, DryRun: dry}
	backup, err := examine(ctx, file)
	if err != nil {
		return err
	}
	j.Ledger, j.Runs = backup.id, backup.runs
	present, err := a.takeAlone(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, present.release()) }()
	if here, err := os.Stat(path); err == nil && os.SameFile(here, backup.info) {
		return daybook.Invalid("%s is the ledger itself", file).WithHint("name a backup")
	}
	if present.id != "" && present.id != backup.id {
		return daybook.Conflict("%s is a backup of ledger %s, and %s is ledger %s", file, backup.id, path, present.id).
			WithHint("another ledger has another place: name it with --db")
	}
	a.plan("%s: %s of ledger %s, last written %s, takes the place of %s", file, daybook.Count(int(backup.runs), "%d run", "%d runs"), backup.id, stamp(backup.written, a.zoneOf("")), path)
	if present.damaged {
		a.plan("the file that is there cannot be read: it is kept as it is")
	}
	a.plan("what happened since then the ledger will not know: what may happen once only is frozen until that is settled")
	if dry {
		a.dryRun()
		return nil
	}
	if err := a.proceed(daybook.Say("db restore")); err != nil {
		return err
	}
	part, since, err := a.stampedCopy(ctx, path, file, backup, present)
	if err != nil {
		return err
	}
	j.Since = since
	if j.Aside, err = present.replace(part, a.Now()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return a.tellRestored(j)
}

// examined is what is known of a backup.
type examined struct {
	id      string
	runs    int64
	written time.Time
	info    os.FileInfo
}

// examine opens a backup to read it, lets SQLite check it, and looks whether this program knows its schema.
func examine(ctx context.Context, file string) (b examined, err error) {
	fault := func(err error) error {
		return daybook.Invalid("%s cannot be used", file).Because(plain(err)).WithHint("name a file that daybook db backup has made")
	}
	if b.info, err = os.Stat(file); err != nil {
		return b, daybook.NotFound("there is no backup %s", file).Because(plain(err))
	}
	db, err := openBackup(file)
	if err != nil {
		return b, fault(err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var sound string
	var schema int
	var written int64
	for _, look := range []struct {
		query string
		into  []any
	}{
		{"PRAGMA integrity_check(1)", []any{&sound}},
		{"SELECT max(version) FROM daybook_migrations", []any{&schema}},
		{"SELECT id, written_us FROM daybook_ledger", []any{&b.id, &written}},
		{"SELECT count(*) FROM daybook_runs", []any{&b.runs}},
	} {
		if err := db.QueryRowContext(ctx, look.query).Scan(look.into...); err != nil {
			return b, fault(err)
		}
		if sound != "ok" {
			return b, fault(errors.New(daybook.Clip(sound, 200)))
		}
	}
	newest, err := newestSchema("sqlite")
	if err != nil {
		return b, err
	}
	if schema > newest {
		return b, daybook.Invalid("the backup has schema %d, newer than this program, which knows %d", schema, newest).
			WithHint("use the newer version of daybook; an older one must not write here")
	}
	b.written = time.UnixMicro(written).UTC()
	return b, nil
}

func openBackup(file string) (*sql.DB, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	return sql.Open("sqlite", (&url.URL{Scheme: "file", Path: abs, RawQuery: "mode=ro"}).String())
}

// stampedCopy makes a copy of the backup beside the ledger that knows that it is one, with the newest schema, and returns its
// name.
func (a *app) stampedCopy(ctx context.Context, path, file string, backup examined, present *seat) (part string, since time.Time, err error) {
	db, err := openBackup(file)
	if err != nil {
		return "", since, err
	}
	part = path + ".restoring"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) { // of one that was killed
		return "", since, errors.Join(err, db.Close())
	}
	_, _, err = copyLedger(ctx, db, part, backup.id, time.Time{})
	if err = errors.Join(err, db.Close()); err != nil {
		return "", since, err
	}
	defer func() {
		if err != nil {
			for _, rest := range []string{"", "-wal", "-shm"} {
				if e := os.Remove(part + rest); e != nil && !errors.Is(e, fs.ErrNotExist) {
					err = errors.Join(err, e)
				}
			}
		}
	}()
	l, err := a.openAt(ctx, "cli", "sqlite:"+part, nil, true)
	if err != nil {
		return "", since, err
	}
	lapse, err := a.putDown(ctx, l, file, present)
	if err = errors.Join(err, l.Close()); err != nil {
		return "", since, err
	}
	return part, lapse.Since, fold(ctx, part)
}

// putDown writes the lapse that the restore is, with a number above all that were.
func (a *app) putDown(ctx context.Context, l *ledger, file string, present *seat) (daybook.Lapse, error) {
	now := a.Now().UTC()
	seen, err := l.Store().Seen(ctx)
	if err != nil {
		return daybook.Lapse{}, err
	}
	saw := engine.ReadWitness(seen.Ledger, engine.WitnessOf(present.path), filepath.Join(witnessDir(), seen.Ledger))
	seen.Copied = now // also when the backup was made by other means
	if !seen.Written.IsZero() {
		seen.Copied = seen.Written
	}
	saw.Lapse = max(saw.Lapse, present.lapse)
	lapse, _ := seen.Forgot(saw, now)
	who := a.person().Name
	lapse.Detail = "restored from " + filepath.Base(file) + " by " + who
	_, err = l.Store().PutLapse(ctx, lapse, daybook.Activity{At: now, Actor: who, Action: "db restore", Note: daybook.Clip(file, daybook.MaxReasonBytes)})
	return lapse, err
}

// fold makes a SQLite file whole by itself, without a log beside it. It fails while somebody else has it open.
func fold(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: "_pragma=busy_timeout(1000)&_pragma=synchronous(FULL)"}).String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode = DELETE").Scan(&mode); err != nil {
		return err
	}
	if mode != "delete" {
		return daybook.New(daybook.CodeUnavailable, "the log of %s could not be folded", path)
	}
	return nil
}

// seat is where a ledger is restored, with what is there now.
type seat struct {
	path    string
	id      string // of the ledger that is there; empty: there is none that can be read, or nobody has worked in it
	lapse   int64
	damaged bool
	lock    *os.File // keeps others out; nil: there is no file
}

// takeAlone takes the place of a ledger for itself. An error with CodeConflict: somebody works on the ledger.
func (a *app) takeAlone(ctx context.Context, path string) (*seat, error) {
	p := &seat{path: path}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err := p.keepOut(); err != nil {
		return nil, err
	}
	if err := p.release(); err != nil { // the lock is this process's, and would be dropped by SQLite's own files
		return nil, err
	}
	if err := fold(ctx, path); err != nil {
		if !damagedFile(err) {
			return nil, inUse(path).Because(err)
		}
		p.damaged = true
	} else if err := p.read(ctx); err != nil {
		p.damaged = true
	}
	return p, p.keepOut()
}

func damagedFile(err error) bool {
	return strings.Contains(err.Error(), "malformed") || strings.Contains(err.Error(), "not a database")
}

func inUse(path string) *daybook.Error {
	return daybook.Conflict("somebody works on the ledger %s", path).WithHint("stop serve, and whatever else has it open, and try again")
}

func (p *seat) read(ctx context.Context) (err error) {
	db, err := openBackup(p.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.QueryRowContext(ctx, "SELECT CASE WHEN EXISTS (SELECT 1 FROM daybook_runs) OR EXISTS (SELECT 1 FROM daybook_nodes) THEN id ELSE '' END FROM daybook_ledger").Scan(&p.id); err != nil {
		return err
	}
	_ = db.QueryRowContext(ctx, "SELECT lapse FROM daybook_ledger").Scan(&p.lapse) // an older schema has none
	return nil
}

// replace keeps what is there under another name and puts a file in its place, each at one instant.
func (p *seat) replace(part string, now time.Time) (aside string, err error) {
	fault := func(err error) error {
		return daybook.New(daybook.CodeUnavailable, "put the backup in the place of %s", p.path).Because(plain(err))
	}
	if p.lock != nil {
		aside = p.path + ".before-" + now.UTC().Format("20060102T150405Z")
		if _, err := os.Lstat(aside); err == nil {
			return "", exists(aside)
		}
		for _, log := range []string{"-wal", "-shm"} { // of a file that could not be read
			if err := os.Rename(p.path+log, aside+log); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", fault(err)
			}
		}
		if err := os.Link(p.path, aside); err != nil {
			if err := os.Rename(p.path, aside); err != nil { // a file system without links
				return "", fault(err)
			}
		}
	}
	if _, err := toDisk(part); err != nil {
		return "", fault(err)
	}
	if err := os.Rename(part, p.path); err != nil {
		return "", fault(err)
	}
	_, err = toDisk(filepath.Dir(p.path))
	return aside, err
}
