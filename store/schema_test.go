package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/daybook-run/daybook/internal/golden"
	"github.com/daybook-run/daybook/store/storetest"
)

// The schema as the database itself tells it: whoever changes it, even unwillingly, sees a difference here.
func TestSchemaIsTheOneOnFile(t *testing.T) {
	for _, c := range []struct {
		kind  func(testing.TB) storetest.Database
		query string
	}{
		{storetest.SQLite, `SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name`},
		{storetest.Postgres, `SELECT line FROM (
SELECT c.relname AS tab, 0 AS part, a.attnum AS n, c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
  || CASE WHEN k.collname IS NOT NULL AND k.collname <> 'default' THEN ' collate ' || k.collname ELSE '' END
  || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END || COALESCE(' default ' || pg_get_expr(d.adbin, d.adrelid), '') AS line
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum LEFT JOIN pg_collation k ON k.oid = a.attcollation
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
UNION ALL SELECT tablename, 1, row_number() OVER (ORDER BY indexname COLLATE "C"), indexdef || ';' FROM pg_indexes WHERE schemaname = 'public'
) x ORDER BY tab COLLATE "C", part, n`},
	} {
		d := c.kind(t).Empty(t)
		t.Run(d.Name, func(t *testing.T) {
			db := d.Open(t)
			if _, err := open(t, db); err != nil {
				t.Fatal(err)
			}
			rows, err := db.Read.QueryContext(t.Context(), c.query)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			var b strings.Builder
			for rows.Next() {
				var line string
				if err := rows.Scan(&line); err != nil {
					t.Fatal(err)
				}
				fmt.Fprintln(&b, line)
			}
			if err := rows.Err(); err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, "testdata/schema."+d.Name+".sql", b.String())
		})
	}
}
