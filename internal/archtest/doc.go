// Package archtest holds the house up: tests that read the source of every package and fail when one imports what it must
// not, calls what it must not, or lacks what every package has.
//
// The rules stand in tables at the top of the test files. Each message says what to do instead; each rule has a planted
// violation that proves it. When a wall stands wrong, move it here and in docs/adr in one commit.
package archtest
