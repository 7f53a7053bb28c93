package storetest

import (
	"context"
	"testing"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/store"
)

// reopen opens the kit's ledger once more.
func (k *kit) reopen(migrate bool) error {
	k.Helper()
	return openErr(k.ctx, k, k.db, migrate)
}

func openErr(ctx context.Context, t testing.TB, d Database, migrate bool) error {
	t.Helper()
	s, err := store.Open(ctx, d.Open(t), store.Options{NewID: NewID, Migrate: migrate, Now: Birth})
	if err == nil {
		_ = s.Close()
	}
	return err
}

var migrateCases = []example{
	{"a new ledger is made once; opened again, nothing changes", func(k *kit) {
		before := k.dump()
		for _, migrate := range []bool{true, false} {
			k.ok(k.reopen(migrate))
		}
		if after := k.dump(); after != before {
			k.Errorf("it wrote\n%s", difference(before, after))
		}
		equal(k, "ledgers", k.number("SELECT count(*) FROM daybook_ledger"), 1)
	}},
	{"without leave to migrate, an empty database is refused, and stays empty", func(k *kit) {
		d := k.db.Empty(k)
		for range 2 {
			err := openErr(k.ctx, k, d, false)
			k.code(err, daybook.CodeUnavailable)
			if daybook.HintOf(err) == "" {
				k.Errorf("no hint: %v", err)
			}
		}
	}},
	{"a newer schema is refused", func(k *kit) {
		k.set("INSERT INTO daybook_migrations (version, name, checksum, applied_us) SELECT max(version) + 1, '9999_new', 'x', 0 FROM daybook_migrations")
		for _, migrate := range []bool{true, false} {
			k.code(k.reopen(migrate), daybook.CodeInvalid)
		}
	}},
	{"a step whose text is another one is refused", func(k *kit) {
		k.set("UPDATE daybook_migrations SET checksum = 'changed' WHERE version = 1")
		for _, migrate := range []bool{true, false} {
			k.code(k.reopen(migrate), daybook.CodeInvalid)
		}
	}},
	{"a step that is missing is refused", func(k *kit) {
		k.set("UPDATE daybook_migrations SET version = version + 100")
		for _, migrate := range []bool{true, false} {
			k.code(k.reopen(migrate), daybook.CodeInvalid)
		}
	}},
	{"eight processes that open an empty database at once make one ledger", func(k *kit) {
		d := k.db.Empty(k)
		handles := make([]store.DB, 8)
		for i := range handles {
			handles[i] = d.Open(k)
		}
		opened := together(len(handles), func(i int) bool {
			s, err := store.Open(k.ctx, handles[i], store.Options{NewID: NewID, Migrate: true, Now: Birth})
			if err != nil {
				k.Error(err)
				return false
			}
			_ = s.Close()
			return true
		})
		equal(k, "opened", opened, 8)
		k.raw = handles[0].Read
		equal(k, "ledgers", k.number("SELECT count(*) FROM daybook_ledger"), 1)
		steps, err := store.Open(k.ctx, handles[0], store.Options{NewID: NewID})
		k.ok(err)
		info, err := steps.Info(k.ctx)
		k.ok(err)
		equal(k, "steps", k.number("SELECT count(*) FROM daybook_migrations"), int64(info.Schema))
	}},
	{"what a person runs by hand is the same schema", func(k *kit) {
		d := k.db.Empty(k)
		script, err := store.Script(k.db.Name, 0)
		k.ok(err)
		_, err = d.Open(k).Write.ExecContext(k.ctx, script)
		k.ok(err)
		k.ok(openErr(k.ctx, k, d, true))
	}},
	{"a context that is over opens nothing", func(k *kit) {
		ctx, cancel := context.WithCancel(k.ctx)
		cancel()
		k.code(openErr(ctx, k, k.db, true), daybook.CodeUnavailable)
	}},
}
