package daybook

import (
	"errors"
	"fmt"
)

// Code classifies an error for a program.
type Code string

// The codes. Unknown errors count as CodeInternal.
const (
	CodeInvalid     Code = "invalid"     // what was asked cannot be right: usage, configuration, a limit
	CodeNotFound    Code = "not_found"   // no such job, key or plan
	CodeConflict    Code = "conflict"    // refused by a rule as things stand now
	CodeStale       Code = "stale"       // the row moved on: another fence, another state
	CodePermanent   Code = "permanent"   // trying again cannot help
	CodeUnavailable Code = "unavailable" // the ledger or the far side cannot be reached now
	CodeInternal    Code = "internal"    // a fault of Daybook or of the machine
)

// Error is an error that speaks to three readers: Code to the program, Message to the user, Hint to whoever must do
// something next. Err, if there is one, is for the operator.
type Error struct {
	Code    Code
	Message string // safe to show, lower case, no full stop
	Hint    string // the next thing to do; may be empty
	Err     error
}

func (e *Error) Error() string {
	s := e.Message
	if e.Err != nil {
		if s != "" {
			s += ": "
		}
		s += e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an *Error with the same Code, so that errors.Is(err, ErrStale) holds whatever the
// message says.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Sentinels for errors.Is.
var (
	ErrInvalid     = &Error{Code: CodeInvalid, Message: "invalid"}
	ErrNotFound    = &Error{Code: CodeNotFound, Message: "not found"}
	ErrConflict    = &Error{Code: CodeConflict, Message: "refused"}
	ErrStale       = &Error{Code: CodeStale, Message: "stale"}
	ErrUnavailable = &Error{Code: CodeUnavailable, Message: "unavailable"}
)

// Invalid returns an error with CodeInvalid.
func Invalid(format string, args ...any) *Error {
	return &Error{Code: CodeInvalid, Message: fmt.Sprintf(format, args...)}
}

// NotFound returns an error with CodeNotFound.
func NotFound(format string, args ...any) *Error {
	return &Error{Code: CodeNotFound, Message: fmt.Sprintf(format, args...)}
}

// Conflict returns an error with CodeConflict.
func Conflict(format string, args ...any) *Error {
	return &Error{Code: CodeConflict, Message: fmt.Sprintf(format, args...)}
}

// WithHint returns e with the next thing to do.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// CodeOf returns the code of err: that of the first *Error in its chain, CodeInternal for any other error, and "" for
// nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// HintOf returns the first hint in the chain of err, or "".
func HintOf(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}
