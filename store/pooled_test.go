package store_test

import (
	"sync"
	"testing"

	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/store/storetest"
)

// TestPostgresWithoutPreparedStatements: as statements are sent through a pooler in transaction mode.
func TestPostgresWithoutPreparedStatements(t *testing.T) {
	address := sync.OnceValue(func() string { return pgtest.URL(t) + "&default_query_exec_mode=exec" })
	// Those that hold every statement; what is left out is about connections, writers that meet, and the schema.
	storetest.Run(t, func(testing.TB) storetest.Database { return storetest.PostgresAt(address) },
		"runs", "apply", "steps", "letters", "trigger", "plan", "jobs", "renames", "prune", "keeper", "alerts", "take", "tokens")
}
