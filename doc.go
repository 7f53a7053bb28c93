// Package daybook is the dictionary of Daybook: the words, the contracts and the pure rules that every other package
// shares. It imports the standard library only, holds no clock and performs nothing.
//
// Daybook is cron that knows which day it is for, and will not do that day twice. Each piece of scheduled work has a
// [Key] made of its [Job] and the business [Window] it answers for. The key is unique in the database for ever, and
// every door (schedule, retry, catch-up, the "run now" button, replay, backfill, event) leads to it.
//
// # Where to find what
//
//	key.go         Key and wire keys: job:window[~n][/subject], and what the far side gets as idempotency key
//	window.go      Window and WindowKind: the business period one run answers for
//	job.go         Job: a definition, with its defaults and its faults
//	subject.go     Subject, Lister: what a window is done for one by one
//	fanout.go      Fanout: how a run with subjects is looked after, its breaker
//	run.go         Run: the record of one key, its eight states and the reasons shown beside them
//	attempt.go     Attempt, Outcome, Effect: one try, what it says of its end, and what it may have done to the world
//	transition.go  the state machine: every arrow a run can take, as pure functions
//	ladder.go      delays before retries, and their jitter
//	trigger.go     Trigger: somebody asks for a key, and the table that decides the answer
//	plan.go        Plan: windows that became due, were missed or were left out, decided but not yet written
//	letter.go      Letter and Alert: what a person must look at
//	store.go       the roles of the store, three to seven methods each, and the service every room is
//	runner.go      the contract of the ways to do work
//	token.go       AttemptID and its token, Role and Token: who may speak for an attempt, and who may come by HTTP
//	error.go       Error: a code for the program, a message for the user, a hint for what to do next
//
// The rules here are pure: a decision is a value ([Transition], [Plan], [Answer]) that the store applies in one
// transaction. The rooms (scheduler, executor, pruner, control and so on) share these words and meet in rows of the
// database; they never call each other.
package daybook
