package store_test

import (
	"strings"
	"testing"

	"github.com/daybook-run/daybook/store"
)

// SQLite plans a statement again each time that a limit is bound which stands by itself.
func TestNoLimitIsPlannedAgain(t *testing.T) {
	seen := 0
	for name, text := range store.Statements {
		if !strings.Contains(text, "LIMIT $") {
			continue
		}
		seen++
		if got := store.Rewritten("sqlite", text); strings.Contains(got, "LIMIT ?") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if seen < 10 {
		t.Errorf("only %d statements have a limit", seen)
	}
}
