package pgtest

import (
	"fmt"
	"testing"
)

func TestAStandbyTakesOver(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts two servers")
	}
	primary := Server(t)
	standby := primary.Standby()
	both := Both(t, standby, primary) // the standby first: it is passed over
	db := connect(t, both)
	mustExec(t, db, "CREATE TABLE kept (id BIGINT)")
	mustExec(t, db, "INSERT INTO kept VALUES (1)")
	if n := count(t, db, fmt.Sprintf("SELECT count(*) FROM pg_settings WHERE name = 'port' AND setting = '%d'", primary.port)); n != 1 {
		t.Error("the connection does not lead to the primary")
	}
	if n := primary.CutAll(); n < 1 {
		t.Errorf("%d sessions ended", n)
	}
	primary.Stop(Crash)
	standby.Promote()
	after := connect(t, both)
	if n := count(t, after, "SELECT count(*) FROM kept"); n != 1 {
		t.Errorf("%d rows on the standby that was promoted", n)
	}
	mustExec(t, after, "INSERT INTO kept VALUES (2)")
}

func TestAPoolerInTransactionMode(t *testing.T) {
	address := Pooler(t, URL(t)) + "&default_query_exec_mode=exec"
	db := connect(t, address)
	mustExec(t, db, "CREATE TABLE kept (id BIGINT)")
	if n := count(t, db, "SELECT count(*) FROM kept"); n != 0 {
		t.Errorf("%d rows", n)
	}
}

func TestAProxyCutsAndRefuses(t *testing.T) {
	p := Through(t, URL(t))
	db := connect(t, p.URL())
	mustExec(t, db, "CREATE TABLE kept (id BIGINT)")
	if p.Statements() == 0 {
		t.Error("no statement was counted")
	}
	p.Refuse(true)
	if n := p.Cut(); n != 1 {
		t.Errorf("%d connections were cut", n)
	}
	if _, err := db.ExecContext(t.Context(), "INSERT INTO kept VALUES (1)"); err == nil {
		t.Error("a statement went through")
	}
	p.Refuse(false)
	mustExec(t, db, "INSERT INTO kept VALUES (2)")
}
