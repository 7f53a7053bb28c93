package config

import "testing"

func TestPlaceOfAFileWithFaults(t *testing.T) {
	for _, c := range []struct{ text, database, zone string }{
		{"", "sqlite:daybook.db", ""},
		{"version: 1\njobs: {renew: {oops", "sqlite:daybook.db", ""},
		{"version: 1\r\ntimezone: Asia/Shanghai\r\ndatabase: sqlite:led.db # ours\r\njbos: {}", "sqlite:led.db", "Asia/Shanghai"},
		{"timezone: Asia/Shangai\ndatabase: \"file:/run/secrets/db\"\n", "file:/run/secrets/db", ""},
		{"database: '${LEDGER}'\n", "${LEDGER}", ""},
		{"jobs:\n  database: sqlite:other.db\n", "sqlite:daybook.db", ""},
	} {
		if f := PlaceOf("d/daybook.yaml", []byte(c.text)); f.Database.String() != c.database || f.Timezone != c.zone || f.Locate("x") != "d/x" {
			t.Errorf("%q: %s %s", c.text, f.Database, f.Timezone)
		}
	}
}
