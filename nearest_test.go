package daybook

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"schedule", "window", "missed", "overlap", "timeout", "effects", "remembers", "settles"}
	for got, want := range map[string]string{
		"schedule":  "schedule",
		"shedule":   "schedule", // one lost
		"schedulee": "schedule", // one added
		"schedual":  "schedule", // two changed
		"sechdule":  "schedule", // neighbours swapped
		"widnow":    "window",
		"windwo":    "window",
		"mised":     "missed",
		"timeuot":   "timeout",
		"effect":    "effects",
		"remember":  "remembers",
		"cron":      "",
		"xyz":       "",
		"":          "",
		"w":         "",
	} {
		if near := Nearest(got, names); near != want {
			t.Errorf("%q: %q, want %q", got, near, want)
		}
	}
	if near := Nearest("ab", []string{"ac", "ab"}); near != "ab" {
		t.Errorf("an equal word is nearest: %q", near)
	}
	if near := Nearest("job", nil); near != "" {
		t.Error(near)
	}
	long := strings.Repeat("x", 300)
	if near := Nearest(long, []string{long + "y"}); near != "" {
		t.Error("what nobody typed is compared")
	}
}

func TestAlignment(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"ca", "abc", 3}, {"kitten", "sitting", 3}, {"daybook", "dyabook", 1},
	} {
		if d := alignment(c.a, c.b, 100); d != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, d, c.want)
		}
		if d := alignment(c.b, c.a, 100); d != c.want {
			t.Errorf("%q to %q: %d, want %d", c.b, c.a, d, c.want)
		}
	}
}
