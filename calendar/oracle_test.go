package calendar

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

// Two libraries of another language agree on the fires of random cron lines; so does this one. testdata/cron_oracle.json
// says how it was made. It pins what expressions mean on ordinary days and where gaps and repeats leave no choice.
func TestCronOracle(t *testing.T) {
	b, err := os.ReadFile("testdata/cron_oracle.json")
	if err != nil {
		t.Fatal(err)
	}
	var oracle struct {
		Rows []struct {
			Cron, Zone, After string
			Fires             []string
		}
	}
	if err := json.Unmarshal(b, &oracle); err != nil {
		t.Fatal(err)
	}
	if len(oracle.Rows) < 400 {
		t.Fatalf("%d rows", len(oracle.Rows))
	}
	for _, row := range oracle.Rows {
		s := must(t, Spec{Schedule: row.Cron, Zone: row.Zone})
		pos, i := at(t, row.After), 0
		for f := range s.Between(pos, at(t, row.Fires[len(row.Fires)-1])) {
			// They give a time that several nominal times share once.
			if f.At.Equal(pos) {
				continue
			}
			if got := f.At.Format("2006-01-02T15:04Z"); i >= len(row.Fires) || got != row.Fires[i] {
				t.Errorf("%s %s after %s: fire %d is %s, want %v", row.Cron, row.Zone, row.After, i, f.At.Format(time.RFC3339), row.Fires)
				break
			}
			pos = f.At
			i++
		}
		if i != len(row.Fires) {
			t.Errorf("%s %s after %s: %d fires, want %v", row.Cron, row.Zone, row.After, i, row.Fires)
		}
	}
}
