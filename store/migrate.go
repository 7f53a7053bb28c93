package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/daybook-run/daybook"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migration is one step of the schema. Steps are forward only; a file that has been released never changes again, which
// the checksum notices.
type migration struct {
	version  int
	name     string
	text     string
	checksum string
}

// all returns the steps in order: files NNNN_name.sql, or a pair NNNN_name.sqlite.sql and NNNN_name.postgres.sql where
// the databases must differ.
func (d *dialect) all() ([]migration, error) {
	entries, err := fs.ReadDir(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	var list []migration
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".sql")
		if base, only, ok := strings.Cut(name, "."); ok {
			if only != d.name {
				continue
			}
			name = base
		}
		version, err := strconv.Atoi(name[:4])
		if err != nil || version != len(list)+1 {
			return nil, fmt.Errorf("migration %s is out of order", e.Name())
		}
		b, err := migrations.ReadFile("migrations/" + e.Name())
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(b)
		list = append(list, migration{version: version, name: name, text: string(b), checksum: hex.EncodeToString(sum[:8])})
	}
	return list, nil
}

// Script returns the statements that bring a schema from a version (0: none) to the newest, for people who run
// migrations themselves.
func Script(database string, from int) (string, error) {
	d := sqlite()
	if database == "postgres" {
		d = postgres()
	}
	list, err := d.all()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(d.rewrite(createMigrations) + ";\n")
	for _, m := range list[min(from, len(list)):] {
		fmt.Fprintf(&b, "\n%s\nINSERT INTO daybook_migrations (version, name, checksum, applied_us) VALUES (%d, '%s', '%s', 0);\n",
			d.rewrite(m.text), m.version, m.name, m.checksum)
	}
	return b.String(), nil
}

const createMigrations = `CREATE TABLE IF NOT EXISTS daybook_migrations (
  version    BIGINT NOT NULL PRIMARY KEY,
  name       TEXT   NOT NULL,
  checksum   TEXT   NOT NULL,
  applied_us BIGINT NOT NULL
)`

const selectMigrations = `SELECT version, name, checksum FROM daybook_migrations ORDER BY version`

const insertMigration = `INSERT INTO daybook_migrations (version, name, checksum, applied_us) VALUES ($1, $2, $3, $4)`

const insertLedger = `INSERT INTO daybook_ledger (id, created_us, sequence, written_us)
SELECT $1, $2, 0, $2 WHERE NOT EXISTS (SELECT 1 FROM daybook_ledger)`

// lockMigrations lets one program at a time change the schema of a PostgreSQL. 0x64617962 is "dayb": a number of our own
// among advisory locks.
const lockMigrations = `SELECT pg_advisory_xact_lock(1684109666)`

const hasMigrations = `SELECT count(*) FROM daybook_migrations`

// migrate compares the schema with this program's. Only one program at a time changes it.
func (s *Store) migrate(ctx context.Context, o Options) error {
	list, err := s.d.all()
	if err != nil {
		return err
	}
	have, err := s.applied(ctx, list)
	if err != nil {
		return err
	}
	if have == len(list) && o.ReadOnly {
		return nil
	}
	if have == len(list) {
		return s.begin(ctx, o)
	}
	if !o.Migrate || o.ReadOnly {
		if have == 0 {
			return daybook.New(daybook.CodeUnavailable, "there is no ledger in this database yet").
				WithHint("daybook serve makes it, or daybook db migrate")
		}
		return daybook.Invalid("the ledger has schema %d, this program needs %d", have, len(list)).
			WithHint("stop the other programs on it, make a copy with daybook db backup, then daybook db migrate")
	}
	return s.write(ctx, "migrate the ledger", func(ctx context.Context, t *tx) error {
		if s.d.name == "postgres" {
			if _, err := t.ExecContext(ctx, lockMigrations); err != nil {
				return err
			}
		}
		if _, err := t.ExecContext(ctx, s.text(createMigrations)); err != nil {
			return err
		}
		have, err := appliedIn(ctx, t, list)
		if err != nil {
			return err
		}
		for _, m := range list[have:] {
			if _, err := t.ExecContext(ctx, s.d.rewrite(m.text)); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			if _, err := t.ExecContext(ctx, s.text(insertMigration), int64(m.version), m.name, m.checksum, us(o.Now)); err != nil {
				return err
			}
		}
		_, err = t.ExecContext(ctx, s.text(insertLedger), s.newID(), us(o.Now))
		return err
	})
}

const countLedgers = `SELECT count(*) FROM daybook_ledger`

// begin gives a schema that was made by the printed statements its ledger: ids are made in Go.
func (s *Store) begin(ctx context.Context, o Options) error {
	var n int
	if err := s.db.Write.QueryRowContext(ctx, s.text(countLedgers)).Scan(&n); err != nil {
		return openFault(err)
	}
	if n > 0 {
		return nil
	}
	return s.write(ctx, "begin the ledger", func(ctx context.Context, t *tx) error {
		if s.d.name == "postgres" {
			if _, err := t.ExecContext(ctx, lockMigrations); err != nil {
				return err
			}
		}
		_, err := t.ExecContext(ctx, s.text(insertLedger), s.newID(), us(o.Now))
		return err
	})
}

// applied returns how many steps the schema has. A database without the table has none.
func (s *Store) applied(ctx context.Context, list []migration) (int, error) {
	var n int
	if err := s.db.Write.QueryRowContext(ctx, s.text(hasMigrations)).Scan(&n); err != nil {
		if ctx.Err() != nil {
			return 0, openFault(err)
		}
		if missing := strings.Contains(err.Error(), "no such table") || sqlState(err) == "42P01"; missing {
			return 0, nil
		}
		return 0, openFault(err)
	}
	rows, err := s.db.Write.QueryContext(ctx, s.text(selectMigrations))
	return check(list, rows, err)
}

func appliedIn(ctx context.Context, t *tx, list []migration) (int, error) {
	rows, err := t.QueryContext(ctx, t.s.text(selectMigrations))
	return check(list, rows, err)
}

func check(list []migration, rows *sql.Rows, err error) (int, error) {
	have := 0
	err = drain(rows, err, func(r *sql.Rows) error {
		var version int
		var name, checksum string
		if err := r.Scan(&version, &name, &checksum); err != nil {
			return err
		}
		have++
		switch {
		case version != have:
			return daybook.Invalid("the ledger's schema lacks step %d", have)
		case have > len(list):
			return daybook.Invalid("the ledger has schema %d (%s), newer than this program, which knows %d", version, name, len(list)).
				WithHint("use the newer version of daybook; an older one must not write here")
		case checksum != list[have-1].checksum:
			return daybook.Invalid("step %d of the ledger's schema (%s) is not the one this program knows", version, name).
				WithHint("another program changed the schema: restore a backup, or use the version that made it")
		}
		return nil
	})
	return have, err
}
