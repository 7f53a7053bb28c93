package daybook

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestErrors(t *testing.T) {
	cause := &Error{Code: CodeStale, Message: "the row moved on", Hint: "look again", Err: io.EOF}
	wrapped := fmt.Errorf("run %s: %w", "renew:2026-10-26", cause)
	outer := &Error{Code: CodeUnavailable, Message: "claim runs", Err: wrapped}
	for _, c := range []struct {
		name       string
		err        error
		text, hint string
		code       Code
	}{
		{"nil", nil, "", "", ""},
		{"any error", io.EOF, "EOF", "", CodeInternal},
		{"alone", Invalid("%d is odd", 3), "3 is odd", "", CodeInvalid},
		{"with a hint", Conflict("no").WithHint("ask %s", "ops"), "no", "ask ops", CodeConflict},
		{"with a cause", cause, "the row moved on: EOF", "look again", CodeStale},
		{"without words", &Error{Code: CodeInternal, Err: io.EOF}, "EOF", "", CodeInternal},
		{"wrapped", wrapped, "run renew:2026-10-26: the row moved on: EOF", "look again", CodeStale},
		{"the outer code counts, the first hint does", outer, "claim runs: run renew:2026-10-26: the row moved on: EOF", "look again", CodeUnavailable},
		{"not found", NotFound("no key %s", "a:b"), "no key a:b", "", CodeNotFound},
	} {
		if c.err != nil && c.err.Error() != c.text {
			t.Errorf("%s: %q", c.name, c.err)
		}
		if CodeOf(c.err) != c.code || HintOf(c.err) != c.hint {
			t.Errorf("%s: code %q, hint %q", c.name, CodeOf(c.err), HintOf(c.err))
		}
	}
	if !errors.Is(outer, io.EOF) || !errors.Is(outer, ErrUnavailable) || !errors.Is(outer, ErrStale) || errors.Is(outer, ErrNotFound) {
		t.Error("errors.Is compares codes along the chain")
	}
	for code, sentinel := range map[Code]*Error{CodeInvalid: ErrInvalid, CodeNotFound: ErrNotFound, CodeConflict: ErrConflict, CodeStale: ErrStale, CodeUnavailable: ErrUnavailable} {
		if !errors.Is(&Error{Code: code, Message: "other words"}, sentinel) || sentinel.Hint != "" {
			t.Errorf("%s", code)
		}
	}
}
