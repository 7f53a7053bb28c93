// Package sim is a simulator of Daybook: by a seed it makes days of work, faults and people, and lets the real rooms live
// through them on a real ledger: scheduler, executor, control and pruner of two nodes, on SQLite, with clocks that differ and
// move by hand, far sides that keep a book of their own, and people who look at it. Checkers that know nothing of the rooms
// read the rows and the book, and say what broke a promise.
//
// Everything runs in a bubble of testing/synctest, so that no time passes, and one goroutine at a time is let through a gate
// before each call of the ledger or of a far side: the seed alone decides the order. A seed that failed fails again.
//
//	clock.go     the time of a simulation
//	gate.go      who may go on, one at a time; what goes wrong there
//	ledger.go    the ledger as a process reaches it: through the gate
//	process.go   a process with its rooms: started, ticked, paused, killed
//	far.go       the far side and its book; farplan.go: what it does with a request
//	jobs.go      the jobs of a seed and their work
//	people.go    what people do
//	world.go     a simulation from its seed to its end
//	history.go   every row that changed, in order, written by triggers of the database
//	check.go     the promises, held against each change; ends.go: against what is left at the end
//	windows.go   which windows there must be, worked out once more by other means
package sim
