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
)

func newDBBackup(a *app) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use: "backup FILE", Short: textDBBackup, Long: textDBBackupLong, Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.backup(cmd.Context(), args[0], dry) },
	}
	writing(cmd, &dry)
	return cmd
}

// backupJSON is daybook/backup.v1.
type backupJSON struct {
	Schema string `json:"schema"`
	File   string `json:"file"`
	Ledger string `json:"ledger"`
	Bytes  int64  `json:"bytes"`
	Runs   int64  `json:"runs"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// backup copies a SQLite ledger as it stands at one instant, also while serve works on it. The copy has its name only
// when it is complete, on the disk, and was read back.
func (a *app) backup(ctx context.Context, file string, dry bool) error {
	return a.withControl(ctx, func(l *ledger, c *control.Control) error {
		if !strings.HasPrefix(l.url, "sqlite:") {
			return daybook.Conflict("a PostgreSQL ledger is backed up with PostgreSQL's own tools").WithHint("%s", dumpLine(l.url, file))
		}
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				return daybook.Invalid("look for %s", file).Because(plain(err))
			}
			return exists(file)
		}
		info, err := c.Info(ctx)
		if err != nil {
			return err
		}
		j := backupJSON{Schema: "daybook/backup.v1", File: file, Ledger: info.ID, DryRun: dry}
		if !dry {
			if j.Bytes, j.Runs, err = copyLedger(ctx, l.db.Read, file, info.ID, a.Now()); err != nil {
				return err
			}
		}
		if a.flags.json {
			return a.printJSON(j)
		}
		if dry {
			err = a.line("would copy ledger %s to %s", info.ID, file)
			a.dryRun()
			return err
		}
		err = a.line("%s: %s, %s of ledger %s, read back and sound", file, size(j.Bytes), daybook.Count(int(j.Runs), "%d run", "%d runs"), info.ID)
		a.say("keep it off this machine: it holds every key, and so what is done already")
		return err
	})
}

func exists(file string) error {
	return daybook.Conflict("%s exists and is left as it is", file).WithHint("name a file that does not exist yet")
}

// copyLedger writes the copy beside its name, notes in it when it was made unless that is zero, checks it, and gives it its
// name last.
func copyLedger(ctx context.Context, db *sql.DB, file, id string, made time.Time) (bytes, runs int64, err error) {
	fault := func(what daybook.Text, err error) error {
		return daybook.New(daybook.CodeUnavailable, "%s", what).Because(plain(err))
	}
	part, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*.part") // mode 0600
	if err != nil {
		return 0, 0, daybook.Invalid("write beside %s", file).Because(plain(err)).WithHint("name a file in a directory that you may write to")
	}
	defer func() {
		if e := os.Remove(part.Name()); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}()
	if err := part.Close(); err != nil {
		return 0, 0, fault(daybook.Say("write beside %s", file), err)
	}
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", part.Name()); err != nil {
		return 0, 0, fault(daybook.Say("copy the ledger"), err)
	}
	if !made.IsZero() {
		if err := noteCopy(ctx, part.Name(), made); err != nil {
			return 0, 0, fault(daybook.Say("copy the ledger"), err)
		}
	}
	if runs, err = readBack(ctx, part.Name(), id); err != nil {
		return 0, 0, fault(daybook.Say("the copy cannot be used"), err)
	}
	if bytes, err = toDisk(part.Name()); err != nil {
		return 0, 0, fault(daybook.Say("write the copy to the disk"), err)
	}
	switch err := os.Link(part.Name(), file); { // fails when the name was taken meanwhile
	case errors.Is(err, fs.ErrExist):
		return 0, 0, exists(file)
	case err != nil:
		if err := claimName(part.Name(), file); err != nil {
			return 0, 0, err
		}
	}
	_, err = toDisk(filepath.Dir(file))
	return bytes, runs, err
}

// noteCopy lets a copy say that it is one: wherever it is put, whoever works on it knows that the ledger went on without it.
func noteCopy(ctx context.Context, path string, made time.Time) (err error) {
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: "_pragma=synchronous(FULL)"}).String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, "UPDATE daybook_ledger SET copied_us = ?", made.UnixMicro())
	return err
}

// claimName gives the copy its name on a file system without links.
func claimName(part, file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return exists(file)
	}
	if err == nil {
		err = errors.Join(f.Close(), os.Rename(part, file))
	}
	if err != nil {
		return daybook.New(daybook.CodeUnavailable, "name the copy %s", file).Because(plain(err))
	}
	return nil
}

// toDisk makes the system write a file, or the names in a directory, to the disk.
func toDisk(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	err = f.Sync()
	info, serr := f.Stat()
	if err = errors.Join(err, serr, f.Close()); err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// readBack opens a copy, lets SQLite check it, and compares whose ledger it is.
func readBack(ctx context.Context, path, id string) (runs int64, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return 0, err
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: abs, RawQuery: "mode=ro"}).String())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var sound, got string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check").Scan(&sound); err != nil {
		return 0, err
	}
	if sound != "ok" {
		return 0, errors.New(daybook.Clip(sound, 200))
	}
	if err := db.QueryRowContext(ctx, "SELECT id FROM daybook_ledger").Scan(&got); err != nil {
		return 0, err
	}
	if got != id {
		return 0, daybook.New(daybook.CodeInternal, "it is ledger %s, not %s", got, id)
	}
	return runs, db.QueryRowContext(ctx, "SELECT count(*) FROM daybook_runs").Scan(&runs)
}
