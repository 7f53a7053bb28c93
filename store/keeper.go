package store

import (
	"context"
	"database/sql"
	"os"
	"time"

	"github.com/daybook-run/daybook"
)

const upsertNode = `INSERT INTO daybook_nodes (id, host, pid, role, version, tzdata, started_us, seen_us, stopped_us, offset_us, boot_id, boot_us, overtaken, calls, mark)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 1)
ON CONFLICT (id) DO UPDATE SET seen_us = excluded.seen_us, stopped_us = excluded.stopped_us, offset_us = excluded.offset_us, boot_us = excluded.boot_us,
  overtaken = excluded.overtaken, calls = excluded.calls, mark = daybook_nodes.mark + 1
RETURNING mark`

// By a clock that leapt ahead and came back the last beat would be one to come: it is said as it is.
const moveSequence = `UPDATE daybook_ledger SET sequence = sequence + 1, written_us = $1 RETURNING id, sequence, lapse`

const forgetNodes = `DELETE FROM daybook_nodes WHERE seen_us < $1`

// nodesKept is how long a node that was not seen stays listed.
const nodesKept = 30 * 24 * time.Hour

// Beat implements daybook.Keeper.
func (s *Store) Beat(ctx context.Context, n daybook.Node, now time.Time) error {
	had := s.marks.of(n.ID, now)
	var seen daybook.Seen
	err := s.write(ctx, "beat", func(ctx context.Context, t *tx) error {
		if err := t.pin(ctx); err != nil { // for the sizes: who writes little learns of them here
			return err
		}
		mark := daybook.Mark{Node: n.ID, At: now}
		if err := t.query(ctx, upsertNode, func(rows *sql.Rows) error { return rows.Scan(&mark.Number) }, n.ID, n.Host, int64(n.PID), n.Role, n.Version, n.TZData,
			us(n.StartedAt), us(now), us(n.StoppedAt), n.Offset.Microseconds(), n.BootID, n.BootClock.Microseconds(), int64(n.Overtaken), string(n.Calls)); err != nil {
			return err
		}
		if now.Sub(n.StartedAt) < 5*time.Second { // once, about when the node starts
			if _, err := t.exec(ctx, forgetNodes, us(now.Add(-nodesKept))); err != nil {
				return err
			}
		}
		seen = daybook.Seen{Marks: map[string]daybook.Mark{n.ID: mark}}
		if err := t.query(ctx, moveSequence, func(rows *sql.Rows) error { return rows.Scan(&seen.Ledger, &seen.Sequence, &seen.Lapse) }, us(now)); err != nil {
			return err
		}
		if seen.Lapse < had.lapse || seen.Lapse == had.lapse && had.Number > 0 && mark.Number <= had.Number {
			return errForgot()
		}
		return t.releaseLeft(ctx, seen.Lapse)
	})
	s.beaten(n.ID, seen, err)
	return err
}

const selectNodes = `SELECT id, host, pid, role, version, tzdata, started_us, seen_us, stopped_us, offset_us, boot_id, boot_us, overtaken, calls FROM daybook_nodes ORDER BY seen_us DESC LIMIT 100`

// Nodes implements daybook.Keeper and daybook.Reader, the one seen last first.
func (s *Store) Nodes(ctx context.Context) ([]daybook.Node, error) {
	var list []daybook.Node
	err := s.read(ctx, "read nodes", selectNodes, func(rows *sql.Rows) error {
		var n daybook.Node
		var started, seen, stopped, offset, boot int64
		err := rows.Scan(&n.ID, &n.Host, &n.PID, &n.Role, &n.Version, &n.TZData, &started, &seen, &stopped, &offset, &n.BootID, &boot, &n.Overtaken, &n.Calls)
		n.StartedAt, n.SeenAt, n.StoppedAt = at(started), at(seen), at(stopped)
		n.Offset, n.BootClock = time.Duration(offset)*time.Microsecond, time.Duration(boot)*time.Microsecond
		list = append(list, n)
		return err
	})
	return list, err
}

// How often the database is asked for the time in one measurement, and how fast an answer is good enough.
const (
	offsetTries = 5
	offsetFast  = 20 * time.Millisecond
)

// ClockOffset implements daybook.Keeper. It is the one place where the database is asked for the time. When in a round trip the
// database looked at its clock is not known: the fastest of a few counts, on one connection, which is made before. A machine under
// load that needs seconds to connect is not off.
func (s *Store) ClockOffset(ctx context.Context, clock func() time.Time) (time.Duration, error) {
	if s.d.name != "postgres" {
		return 0, nil
	}
	conn, err := s.db.Write.Conn(ctx)
	if err != nil {
		return 0, s.fault("ask the database for the time", err)
	}
	defer func() { _ = conn.Close() }()
	var offset, fastest time.Duration
	for n := range offsetTries {
		before := clock()
		var theirs int64
		if err := conn.QueryRowContext(ctx, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").Scan(&theirs); err != nil {
			return 0, s.fault("ask the database for the time", err)
		}
		took := clock().Sub(before)
		if n == 0 || took < fastest {
			offset, fastest = at(theirs).Sub(before.Add(took/2)), took
		}
		if fastest <= offsetFast {
			break
		}
	}
	return offset, nil
}

const selectLedger = `SELECT id, created_us, sequence FROM daybook_ledger`

const selectSchema = `SELECT max(version) FROM daybook_migrations`

const selectSizePostgres = `SELECT COALESCE(sum(pg_total_relation_size(c.oid)), 0)::bigint,
  COALESCE(max(CASE WHEN c.relname = 'daybook_runs' AND c.reltuples >= 0 THEN c.reltuples END)::bigint, (SELECT count(*) FROM daybook_runs)), current_database()
FROM pg_class c WHERE c.relname LIKE 'daybook\_%' AND c.relkind = 'r' AND pg_table_is_visible(c.oid)`

const selectSizeSQLite = `SELECT p.page_count * s.page_size, (SELECT count(*) FROM daybook_runs), (SELECT file FROM pragma_database_list WHERE name = 'main')
FROM pragma_page_count() p, pragma_page_size() s`

// Info implements daybook.Keeper and daybook.Reader.
func (s *Store) Info(ctx context.Context) (daybook.LedgerInfo, error) {
	var info daybook.LedgerInfo
	if err := s.read(ctx, "read the ledger", selectLedger, func(rows *sql.Rows) error {
		var created int64
		err := rows.Scan(&info.ID, &created, &info.Sequence)
		info.CreatedAt = at(created)
		return err
	}); err != nil {
		return info, err
	}
	if err := s.read(ctx, "read the version", s.d.version, func(rows *sql.Rows) error { return rows.Scan(&info.Database) }); err != nil {
		return info, err
	}
	if err := s.read(ctx, "read the schema", selectSchema, func(rows *sql.Rows) error { return rows.Scan(&info.Schema) }); err != nil {
		return info, err
	}
	return info, s.sizes(ctx, &info)
}

// sizes asks PostgreSQL for its estimate of the runs, and counts them as long as it has none.
func (s *Store) sizes(ctx context.Context, info *daybook.LedgerInfo) error {
	if s.d.name == "postgres" {
		return s.read(ctx, "read the size", selectSizePostgres,
			func(rows *sql.Rows) error { return rows.Scan(&info.Bytes, &info.Runs, &info.Place) })
	}
	return s.read(ctx, "read the size", selectSizeSQLite,
		func(rows *sql.Rows) error {
			err := rows.Scan(&info.Bytes, &info.Runs, &info.Place)
			if log, gone := os.Stat(info.Place + "-wal"); gone == nil {
				info.WALBytes = log.Size()
			}
			return err
		})
}

// Checkpoint folds SQLite's write-ahead log into the file and empties it, as far as readers let it: it waits for none of
// them, for every writer would wait with it. It reports the size of the log in bytes that remains; 0 on PostgreSQL.
func (s *Store) Checkpoint(ctx context.Context) (int64, error) {
	if s.d.name != "sqlite" {
		return 0, nil
	}
	var busy, log, done, page int64
	err := withoutPatience(ctx, s.db.Write, func(c *sql.Conn) error {
		err := c.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &done)
		if err == nil {
			err = c.QueryRowContext(ctx, "PRAGMA page_size").Scan(&page)
		}
		return err
	})
	return max(log, 0) * page, s.fault("checkpoint", err)
}
