package lang

import (
	"strings"
	"testing"

	"github.com/daybook-run/daybook"
)

func TestT(t *testing.T) {
	e, z := For(English), For(Chinese)
	for _, c := range []struct{ got, want string }{
		{e.State(daybook.Retryable), "retryable"},
		{z.State(daybook.Retryable), "等待重试"},
		{e.Reason(daybook.ReasonCovered, "a:1"), "covered by a:1"},
		{z.Reason(daybook.ReasonCovered, "a:1"), "由 a:1 覆盖"},
		{z.Reason(daybook.ReasonDayOff, ""), "休息日"},
		{z.Reason("not a reason", ""), "not a reason"},
		{e.Need("letters", "n", 1), "1 open dead letter"},
		{e.Need("letters", "n", 2), "2 open dead letters"},
		{z.Need("letters", "n", 1), "1 个未处理的死信"},
		{z.T("alert.attempt", "n", 3), "第 3 次尝试"},
		{z.T("alert.now", "state", "完成", "time", "03:00"), "03:00 起完成"},
		{e.T("alert.owner", "owner", "{id} {owner}"), "Owner {id} {owner}"}, // a value is not read again
		{e.T("alert.owner"), "Owner {owner}"},
		{e.T("no such name", "a", 1), "no such name"},
		{Printer{}.Verdict("not known yet"), "Not known yet"},
		{z.Word("wire key"), "对外幂等键"},
		{z.Page("money"), "对账"},
		{z.Question("ran"), "都运行了吗？"},
		{z.Letter(daybook.LetterSettled), "已核定"},
		{z.Alert(daybook.AlertDeadLetter), "进入死信"},
		{e.Outcome(daybook.Reused), "reused"},
		{For("xx").Lang(), English},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct{ want, preferred string }{ // separated by |
		{English, ""},
		{Chinese, "zh"},
		{Chinese, "zh_CN.UTF-8"},
		{Chinese, "zh-Hant-TW"},
		{English, "en_GB.UTF-8"},
		{English, "C.UTF-8"},
		{Chinese, "C|POSIX|zh_CN"},
		{Chinese, "|zh-CN|en"},
		{English, "en|zh-CN"},
		{Chinese, "fr, zh;q=0.8, en;q=0.5"},
		{English, "zh;q=0.1, en;q=0.2"},
		{Chinese, "en;q=0, zh"},
		{English, "zh;q=x"},
		{English, "*"},
		{English, "zhx"},
		{English, strings.Repeat("a", 600) + ",zh"},
	} {
		if got := Match(strings.Split(c.preferred, "|")...); got != c.want {
			t.Errorf("%q: %s, want %s", c.preferred, got, c.want)
		}
	}
}

func TestWidthAndCut(t *testing.T) {
	const family = "👨‍👩‍👧"
	for _, c := range []struct {
		text         string
		width, chars int
		cut5         string
	}{
		{"", 0, 0, ""},
		{"abc", 3, 3, "abc"},
		{"abcdef", 6, 6, "abcd…"},
		{"死信", 4, 2, "死信"},
		{"死信重放", 8, 4, "死信…"},
		{"a死信重", 7, 4, "a死…"},
		{"cafe\u0301 au", 7, 7, "cafe\u0301…"},
		{family + "bcde", 6, 5, family + "bc…"},
		{"🇨🇳🇩🇪x", 5, 3, "🇨🇳🇩🇪x"},
		{"🇨🇳🇩🇪xy", 6, 4, "🇨🇳🇩🇪…"},
		{"👍🏽 ok!", 6, 5, "👍🏽 o…"},
		{"한국어", 6, 3, "한국…"},
		{"\u1112\u1161\u11ab", 2, 1, "\u1112\u1161\u11ab"},
		{"（全角）", 8, 4, "（全…"},
		{"a\r\nb", 2, 3, "a\r\nb"},
		{"❤️x", 3, 2, "❤️x"},
		{"\xff\xfe", 2, 2, "\xff\xfe"},
		{"✓ done", 6, 6, "✓ do…"},
	} {
		if got := Width(c.text); got != c.width {
			t.Errorf("width of %q: %d, want %d", c.text, got, c.width)
		}
		if got := Chars(c.text); got != c.chars {
			t.Errorf("characters of %q: %d, want %d", c.text, got, c.chars)
		}
		if got := Cut(c.text, 5); got != c.cut5 {
			t.Errorf("%q cut to 5: %q, want %q", c.text, got, c.cut5)
		}
		if got := Pad(c.text, 9); Width(got) != 9 {
			t.Errorf("%q padded to 9: %q", c.text, got)
		}
	}
	if got := CutChars("死信重放", 3); got != "死信…" {
		t.Errorf("cut to 3 characters: %q", got)
	}
	if got := Cut("死", 0); got != "" {
		t.Errorf("cut to nothing: %q", got)
	}
	if got := Chars("a" + strings.Repeat("\u0301", 1000)); got < 10 {
		t.Errorf("a thousand marks are %d characters", got)
	}
}

func FuzzCut(f *testing.F) {
	f.Add("a死👨‍👩‍👧\r\n", 5)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n &= 0xff
		if got := Cut(s, n); Width(got) > n {
			t.Errorf("%q cut to %d is %q, %d wide", s, n, got, Width(got))
		}
		if got := CutChars(s, n); Chars(got) > n && n > 0 {
			t.Errorf("%q cut to %d characters is %q", s, n, got)
		}
		rest := ""
		for t := s; t != ""; t = t[len(first(t)):] {
			rest += first(t)
		}
		if rest != s {
			t.Errorf("%q comes apart into %q", s, rest)
		}
	})
}
