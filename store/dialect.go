package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/daybook-run/daybook"
)

// Conventions for writing SQL here.
//
// A statement is one whole constant, in the file of its table, written once for both databases: placeholders are $1, $2
// and so on, types are TEXT and BIGINT, nothing is NULL, writes that may collide say ON CONFLICT. What differs is
// marked, and the dialect replaces the mark when the statement is used for the first time:
//
//	/*lock*/            FOR UPDATE SKIP LOCKED, or nothing; /*lock l*/ locks the rows of l only
//	/*wait*/            FOR UPDATE, or nothing
//	/*share*/           FOR KEY SHARE SKIP LOCKED, or nothing: passes over what is deleted or held by /*wait*/, and no other update
//	/*shared*/          FOR KEY SHARE, or nothing: waits for those
//	/*alone v*/         whether this transaction is the only one that asks this of a text v, or TRUE
//	/*in $1*/           membership in a list given as one argument, []string
//	/*pick(*/ … /*)*/   membership in a subselect that must be evaluated once
//	/*rows t b …*/      rows given in bulk, one letter a column: t for TEXT, b for BIGINT
//	/*ascii*/           a column that sorts by byte
//	/*clustered*/       a table that is stored in the order of its key
//
// A placeholder inside a string literal would be replaced as well; there is none.
type dialect struct {
	name    string
	rewrite func(text string) string
	list    func(values []string) (any, error) // the argument of /*in*/
	bulk    func(ctx context.Context, t *tx, text string, rows [][]any, each func(*sql.Rows) error) error
	// together runs statements that do not depend on each other: see part.
	together func(ctx context.Context, t *tx, parts []*part) error
	// end moves runs that are live to rest, each if it stands as the transition says, and tells which.
	end    func(ctx context.Context, t *tx, ends []*daybook.Transition, ended func(k daybook.Key, serial string)) error
	single func(statement string) string // one with a mark /*rows*/, for one row
	busy   func(err error) bool          // try again: another writer was first
	unique func(err error) bool
	// The connection is gone, or the server goes away; and: on this connection nothing can be written. A try that met one of
	// them was not committed, unless it was the commit that met it.
	cut, readOnly func(err error) bool
	advice        func(err error) (daybook.Text, bool) // what can be done about an error
	call          string                               // tells other nodes of what is due, see tx.call; empty: there are none
	verify        func(ctx context.Context, db DB) error
	version       string // SELECT that returns the version of the database
	pin           string // see tx.pin; empty: there is nothing to pin
	readsUpdates  bool   // the rows of an update can be read on in the same statement
}

var (
	markLock = regexp.MustCompile(`/\*lock (\w+)\*/`)
	markIn   = regexp.MustCompile(`/\*in (\$\d+)\*/`)
	markRows = regexp.MustCompile(`/\*rows ([tb ]+)\*/`)
	markOnly = regexp.MustCompile(`/\*alone ([\w.]+)\*/`)
	dollar   = regexp.MustCompile(`\$(\d+)`)
	bound    = regexp.MustCompile(`LIMIT (\$\d+)`)
	newRows  = regexp.MustCompile(`^WITH v \([^)]*\) AS\s*\((/\*rows [tb ]+\*/)\)\s*(INSERT INTO \w+ \([^)]*\))\s*SELECT \* FROM v WHERE TRUE`)
)

func rewriteSQLite(text string) string {
	text = newRows.ReplaceAllString(text, "$2 $1") // one row by itself, not a table of one row
	text = markOnly.ReplaceAllString(text, "TRUE")
	text = markLock.ReplaceAllString(text, "")
	text = markIn.ReplaceAllString(text, `IN (SELECT value FROM json_each($1))`)
	text = strings.NewReplacer("/*lock*/", "", "/*wait*/", "", "/*share*/", "", "/*shared*/", "", "/*ascii*/", "", "/*clustered*/", "WITHOUT ROWID",
		"/*pick(*/", "IN (", "/*)*/", ")").Replace(text)
	text = markRows.ReplaceAllStringFunc(text, func(m string) string {
		n := len(strings.Fields(markRows.FindStringSubmatch(m)[1]))
		marks := make([]string, n)
		for i := range marks {
			marks[i] = fmt.Sprintf("$%d", i+1)
		}
		return "VALUES (" + strings.Join(marks, ", ") + ")"
	})
	// A parameter that stands for a limit by itself is looked at by SQLite's planner, which then plans the statement again
	// whenever it is bound: half the time of a claim.
	text = bound.ReplaceAllString(text, "LIMIT 0 + ${1}")
	return dollar.ReplaceAllString(text, "?$1")
}

func rewritePostgres(text string) string {
	text = markOnly.ReplaceAllString(text, "pg_try_advisory_xact_lock(hashtextextended($1, 0))")
	text = markLock.ReplaceAllString(text, "FOR UPDATE OF $1 SKIP LOCKED")
	text = markIn.ReplaceAllString(text, `= ANY(${1}::text[])`)
	text = strings.NewReplacer("/*lock*/", "FOR UPDATE SKIP LOCKED", "/*wait*/", "FOR UPDATE", "/*share*/", "FOR KEY SHARE SKIP LOCKED", "/*shared*/", "FOR KEY SHARE", "/*ascii*/", `COLLATE "C"`, "/*clustered*/", "",
		"/*pick(*/", "= ANY(ARRAY(", "/*)*/", "))").Replace(text)
	return markRows.ReplaceAllStringFunc(text, func(m string) string {
		columns := strings.Fields(markRows.FindStringSubmatch(m)[1])
		for i, c := range columns {
			columns[i] = fmt.Sprintf("$%d::%s[]", i+1, typeOf(c))
		}
		return "SELECT * FROM unnest(" + strings.Join(columns, ", ") + ")"
	})
}

// typeOf is the type of a column in the mark for rows.
func typeOf(letter string) string {
	if letter == "b" {
		return "bigint"
	}
	return "text"
}

// bulkByRow runs the statement once a row; prepared, in one transaction, that is SQLite's fast way.
func bulkByRow(ctx context.Context, t *tx, text string, rows [][]any, each func(*sql.Rows) error) error {
	after := readAfter[text]
	if one, ok := oneRow[text]; ok {
		text = one
	}
	// The driver starts a goroutine for each call that can be cancelled, which costs as much as the row: of many, none is.
	short := ctx
	if len(rows) > 1 {
		short = context.WithoutCancel(ctx)
	}
	var wrote []string
	for _, row := range rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		if each != nil && after == "" {
			if err := t.query(short, text, each, row...); err != nil {
				return err
			}
			continue
		}
		n, err := t.exec(short, text, row...)
		if err != nil {
			return err
		}
		if each != nil && n > 0 {
			wrote = append(wrote, row[0].(string))
		}
	}
	if len(wrote) == 0 {
		return nil
	}
	list, err := t.s.d.list(wrote)
	if err != nil {
		return err
	}
	return t.query(short, after, each, list)
}

// bulkByArrays runs the statement once, with an array a column.
func bulkByArrays(ctx context.Context, t *tx, text string, rows [][]any, each func(*sql.Rows) error) error {
	args, err := arrays(rows)
	if err != nil {
		return err
	}
	if each == nil {
		_, err := t.exec(ctx, text, args...)
		return err
	}
	return t.query(ctx, text, each, args...)
}

// arrays makes a column of each place of rows.
func arrays(rows [][]any) ([]any, error) {
	args := make([]any, len(rows[0]))
	for c := range args {
		switch rows[0][c].(type) {
		case string:
			column := make([]string, len(rows))
			for i := range rows {
				column[i] = rows[i][c].(string)
			}
			args[c] = column
		case int64:
			column := make([]int64, len(rows))
			for i := range rows {
				column[i] = rows[i][c].(int64)
			}
			args[c] = column
		default:
			return nil, daybook.New(daybook.CodeInternal, "bulk column %d is a %T: only string and int64 are", c, rows[0][c])
		}
	}
	return args, nil
}

func listAsJSON(values []string) (any, error) {
	b, err := json.Marshal(values)
	return string(b), err
}

func listAsArray(values []string) (any, error) { return values, nil }
