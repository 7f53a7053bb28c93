// Package crash kills the real binary while it works, again and again, and then checks from outside that nothing was
// lost and nothing was done twice: by the ledger's rows, by the book of a payment gateway that is a process of its own,
// and by a diary that the started commands keep themselves. It is all tests, and nothing imports it.
//
// Beside the kills, people undo, replay, cancel and dismiss renewals in steps, several at once.
//
//	go test ./internal/crash                                            a dozen kills on each database
//	go test ./internal/crash -run Chaos/sqlite -kills 1000 -timeout 30m the long run: four worlds side by side
//	go test ./internal/crash -run Chaos -seed 7                         the same choices again
package crash
