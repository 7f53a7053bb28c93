package store_test

import (
	"sync"
	"testing"

	"github.com/daybook-run/daybook/store/storetest"
)

// TestPostgresWithoutPreparedStatements: as statements are sent through a pooler in transaction mode.
func TestPostgresWithoutPreparedStatements(t *testing.T) {
	// Those that hold every statement; what is left out is about connections, writers that meet, and the schema.
	pooled := func(t testing.TB) storetest.Database {
		return storetest.PostgresAt(sync.OnceValue(func() string { return storetest.PostgresURL(t) + "&default_query_exec_mode=exec" }))
	}
	storetest.Run(t, pooled,
		"runs", "apply", "steps", "letters", "trigger", "plan", "jobs", "renames", "prune", "keeper", "alerts", "take", "tokens")
}
