package main

import (
	"strings"
	"testing"
)

// TestInstantsOfLettersAreInTheirZone: whichever way letters are shown.
func TestInstantsOfLettersAreInTheirZone(t *testing.T) {
	t.Parallel()
	s := newScene(t, "sqlite:daybook.db", `version: 1
timezone: Europe/Berlin
defaults: {owner: ops}
jobs:
  pay: {window: day, effects: once, shell: 'echo "a no counts from 2026-03-29T01:00:00Z on"; exit 65'}
`)
	s.must(0, "db", "migrate")
	defer s.serve()()
	s.must(1, "job", "trigger", "pay", "--date", "2026-03-29", "--wait")
	for _, args := range [][]string{{"dead", "list"}, {"dead", "list", "--group", "error"}, {"dead", "replay", "--plan"}} {
		if said := s.must(0, args...); !strings.Contains(said, "a no counts from 2026-03-29 03:00:00 Europe/Berlin on") {
			t.Errorf("%v:\n%s", args, said)
		}
	}
}
