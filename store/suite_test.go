package store_test

import (
	"testing"

	"github.com/daybook-run/daybook/store/storetest"
)

func TestSQLite(t *testing.T) { storetest.Run(t, storetest.SQLite) }

func TestPostgres(t *testing.T) { storetest.Run(t, storetest.Postgres) }
