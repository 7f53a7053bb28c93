package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// A part is one of several statements that are sent together: none reads what another writes, for on PostgreSQL all of
// them see the ledger as it was before the first.
type part struct {
	statement string
	rows      [][]any // of its mark /*rows*/; without one it has one row: its arguments
	wrote     int64   // how many rows it wrote, afterwards
}

// one is a part about one row.
func one(statement string, args ...any) *part {
	return &part{statement: statement, rows: [][]any{args}}
}

// together runs statements that do not depend on each other. Those that lock rows do so in the order given.
func (t *tx) together(ctx context.Context, parts []*part) error { return t.s.d.together(ctx, t, parts) }

// rows runs a query with a mark /*rows*/.
func (t *tx) rows(ctx context.Context, statement string, rows [][]any, each func(*sql.Rows) error) error {
	if len(rows) == 1 {
		return t.query(ctx, t.s.d.single(statement), each, rows[0]...)
	}
	return t.bulk(ctx, statement, rows, each)
}

// togetherByTurns runs one after the other: SQLite is in this process, and joining them would save nothing.
func togetherByTurns(ctx context.Context, t *tx, parts []*part) error {
	short := context.WithoutCancel(ctx) // as in bulkByRow
	for _, p := range parts {
		p.wrote = 0
		text := p.statement
		if row, ok := oneRow[text]; ok {
			text = row
		}
		for _, row := range p.rows {
			if err := ctx.Err(); err != nil {
				return err
			}
			if returns(text) {
				if err := t.query(short, text, func(*sql.Rows) error { p.wrote++; return nil }, row...); err != nil {
					return err
				}
				continue
			}
			n, err := t.exec(short, text, row...)
			if p.wrote += n; err != nil {
				return err
			}
		}
	}
	return nil
}

// togetherAtOnce makes one statement of them, which costs one round trip. Each is a common table expression; they are carried
// out in the order in which their rows are counted.
func togetherAtOnce(ctx context.Context, t *tx, parts []*part) error {
	statements, into := make([]string, len(parts)), make([]any, len(parts))
	var args []any
	for i, p := range parts {
		statements[i], into[i] = p.statement, &p.wrote
		if len(p.rows) == 1 {
			statements[i] = oneRowOf(p.statement)
			args = append(args, p.rows[0]...)
			continue
		}
		columns, err := arrays(p.rows)
		if err != nil {
			return err
		}
		args = append(args, columns...)
	}
	if err := t.pinFor(ctx, args); err != nil {
		return err
	}
	rows, err := t.QueryContext(ctx, t.s.joined(statements), args...)
	return drain(rows, err, func(rows *sql.Rows) error { return rows.Scan(into...) })
}

// joined returns the statement that several make, kept for the next time.
func (s *Store) joined(statements []string) string {
	key := sized{"\x00" + strings.Join(statements, "\x00"), s.size()} // no statement is called so
	if text, ok := s.texts.Load(key); ok {
		return text.(string)
	}
	text := joinPostgres(statements) + key.size
	s.texts.Store(key, text)
	return text
}

func joinPostgres(statements []string) string {
	parts, counts := make([]string, len(statements)), make([]string, len(statements))
	used := 0 // placeholders of those before
	for i, statement := range statements {
		most := 0
		text := dollar.ReplaceAllStringFunc(rewritePostgres(statement), func(m string) string {
			n, _ := strconv.Atoi(m[1:])
			most = max(most, n)
			return fmt.Sprintf("$%d", used+n)
		})
		if !returns(statement) {
			text += " RETURNING 1"
		}
		used += most
		parts[i], counts[i] = fmt.Sprintf("p%d AS (%s)", i, text), fmt.Sprintf("(SELECT count(*) FROM p%d)", i)
	}
	return "WITH " + strings.Join(parts, ", ") + " SELECT " + strings.Join(counts, ", ")
}

// returns reports whether a statement has rows to return.
func returns(statement string) bool {
	return strings.Contains(statement, "RETURNING") || strings.HasPrefix(statement, "SELECT")
}

// oneRowOf replaces the mark for many rows by one row: PostgreSQL would take arrays apart for nothing.
func oneRowOf(statement string) string {
	if text, ok := oneRows.Load(statement); ok {
		return text.(string)
	}
	text := markRows.ReplaceAllStringFunc(statement, func(m string) string {
		columns := strings.Fields(markRows.FindStringSubmatch(m)[1])
		for i, c := range columns {
			columns[i] = fmt.Sprintf("$%d::%s", i+1, typeOf(c))
		}
		return "SELECT " + strings.Join(columns, ", ")
	})
	oneRows.Store(statement, text)
	return text
}

// oneRows keeps what oneRowOf found out.
var oneRows sync.Map
