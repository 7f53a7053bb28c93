package store

import "time"

// Rewritten returns a statement as a database wants it.
func Rewritten(database, text string) string {
	if database == "postgres" {
		return rewritePostgres(text)
	}
	return rewriteSQLite(text)
}

// OneRowOf returns a statement for one row where it is for many.
func OneRowOf(text string) string { return oneRowOf(text) }

// Waiting is how many wait to have a mark written by the next transaction.
func Waiting(s *Store) int {
	s.marking.mu.Lock()
	defer s.marking.mu.Unlock()
	return len(s.marking.waiting)
}

// Knocking is how many triggers wait for one that is being written.
func Knocking(s *Store) int {
	s.knocking.mu.Lock()
	defer s.knocking.mu.Unlock()
	return len(s.knocking.waiting)
}

// Patient has those who come after a transaction wait for it, however long it takes.
func Patient(s *Store) { s.marking.patience, s.knocking.patience = time.Hour, time.Hour }
