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
	CodeDenied      Code = "denied"      // whoever asks has no right to
	CodePermanent   Code = "permanent"   // trying again cannot help
	CodeUnavailable Code = "unavailable" // the ledger or the far side cannot be reached now
	CodeInternal    Code = "internal"    // a fault of Daybook or of the machine
)

// Error is an error that speaks to three readers: Code to the program, Message to the user, Hint to whoever must do
// something next. Err, if there is one, is for the operator. Message and Hint are English; Texts has them for other
// languages.
type Error struct {
	Code    Code
	Message string // safe to show, lower case, no full stop
	Hint    string // the next thing to do; may be empty
	Err     error

	message, hint Text // what Message and Hint were made of
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
	// ErrForgot is matched by the errors of a ledger that does not know of what it acknowledged. See Lapse.
	ErrForgot      = errors.New("the ledger forgot")
	ErrInvalid     = New(CodeInvalid, "invalid")
	ErrNotFound    = New(CodeNotFound, "not found")
	ErrConflict    = New(CodeConflict, "refused")
	ErrStale       = New(CodeStale, "stale")
	ErrUnavailable = New(CodeUnavailable, "unavailable")
)

// New returns an error with a code. The format is a constant, as for [Say].
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), message: Say(format, args...)}
}

// Invalid returns an error with CodeInvalid.
func Invalid(format string, args ...any) *Error { return New(CodeInvalid, format, args...) }

// NotFound returns an error with CodeNotFound.
func NotFound(format string, args ...any) *Error { return New(CodeNotFound, format, args...) }

// Conflict returns an error with CodeConflict.
func Conflict(format string, args ...any) *Error { return New(CodeConflict, format, args...) }

// Stale returns an error with CodeStale.
func Stale(format string, args ...any) *Error { return New(CodeStale, format, args...) }

// Denied returns an error with CodeDenied.
func Denied(format string, args ...any) *Error { return New(CodeDenied, format, args...) }

// WithHint returns e with the next thing to do.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint, e.hint = fmt.Sprintf(format, args...), Say(format, args...)
	return e
}

// Because returns e with its cause. A hint of the cause is then that of e, unless e has its own: see [HintOf].
func (e *Error) Because(cause error) *Error {
	e.Err = cause
	return e
}

// Texts returns Message and Hint for whoever says them in another language. The cause is not in them.
func (e *Error) Texts() (message, hint Text) {
	message, hint = e.message, e.hint
	if message.String() != e.Message {
		message = literal(e.Message)
	}
	if hint.String() != e.Hint {
		hint = literal(e.Hint)
	}
	return message, hint
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
func HintOf(err error) string { return HintText(err).String() }

// HintText returns the first hint in the chain of err, or the zero Text.
func HintText(err error) Text {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return Text{}
		}
		if e.Hint != "" {
			_, hint := e.Texts()
			return hint
		}
		err = e.Err
	}
	return Text{}
}
