package runner

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/daybook-run/daybook"
)

func TestSafeText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                  "",
		"plain\ttext\n":                     "plain\ttext\n",
		"昨日 6 个任务\n":                        "昨日 6 个任务\n",
		"a\x00b":                            "a\uFFFDb",
		"a\xffb\xc3":                        "a\uFFFDb\uFFFD",
		"\xe6\x98":                          "\uFFFD\uFFFD",
		"\xe6\x98a":                         "\uFFFD\uFFFDa",
		"\xe6\x98\n":                        "\uFFFD\uFFFD\n",
		"\xed\xa0\x80":                      "\uFFFD\uFFFD\uFFFD", // half of a surrogate pair
		"a\r\nb\r\n":                        "a\nb\n",
		"a\r\r\nb":                          "a\nb",
		"10%\r20%\r100%\n":                  "10%\n20%\n100%\n",
		"end\r":                             "end\n",
		"\r\x1b[2Kb":                        "\nb",
		"\x1b[1;31mred\x1b[0m":              "red",
		"\x1b]0;title\x07text":              "text",
		"\x1b]0;title\x1b\\text":            "text",
		"\x1b]0;never ended\nnext":          "\nnext",
		"\x1bPq#0\x1b\\after":               "after",
		"\x1b(Bcharset":                     "charset",
		"\x1b7saved\x1b8":                   "saved",
		"\x1b":                              "",
		"\x1b[":                             "",
		"\x1b[31\nkept":                     "\nkept",
		"\x1b[31\u4efb":                     "\u4efb",
		"\x1b\x1b[1mtwice":                  "twice",
		"bell\x07back\x08\x7f":              "bellback",
		"c1 \u009b31m \u0085":               "c1 31m ",
		"<script>alert(1)</script>":         "<script>alert(1)</script>", // escaping is for whoever shows it
		"\x1b]" + strings.Repeat("x", 3000): strings.Repeat("x", 3000-maxCode+1),
	} {
		if got := SafeText([]byte(in)); got != want {
			t.Errorf("%.80q: got %.80q, want %.80q", in, got, want)
		}
	}
}

func FuzzSafeText(f *testing.F) {
	for _, s := range []string{"a\x00b", "\xe6\x98\r\r\n\x1b[31m", "\x1b]0;t\x1b\\x", "a\u0085\xff\r", "\x1b(\x1b"} {
		f.Add([]byte(s), 1)
	}
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		text := SafeText(b)
		if !utf8.ValidString(text) {
			t.Fatalf("not UTF-8: %q", text)
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
			t.Fatalf("a control character at %d: %q", i, text)
		}
		if again := SafeText([]byte(text)); again != text {
			t.Fatalf("not the same when cleaned again: %q, %q", text, again)
		}
		c := NewCapture(daybook.MaxOutputBytes)
		at := min(max(cut, 0), len(b))
		_, _ = c.Write(b[:at])
		_, _ = c.Write(b[at:])
		if len(text) < 1<<14 {
			if got := c.Output().Text; got != text {
				t.Fatalf("cut at %d: %q, want %q", at, got, text)
			}
		}
		small := NewCapture(markRoom + 32)
		_, _ = small.Write(b)
		if out := small.Output(); len(out.Text) > markRoom+32 || !utf8.ValidString(out.Text) || out.Omitted > 0 != (len(text) > 32) && len(text) < 28 {
			t.Fatalf("kept %q, omitted %d, of %q", out.Text, out.Omitted, text)
		}
	})
}

func TestCaptureKeepsHeadAndTail(t *testing.T) {
	t.Parallel()
	for _, part := range []int{1, 3, 7, 100, 1000} {
		var whole strings.Builder
		for i := range 500 {
			fmt.Fprintf(&whole, "line %d\n", i)
		}
		c := NewCapture(markRoom + 200)
		for text := whole.String(); len(text) > 0; {
			n := min(part, len(text))
			_, _ = c.Write([]byte(text[:n]))
			text = text[n:]
		}
		out := c.Output()
		omitted := int64(whole.Len() - 200)
		if !strings.HasPrefix(out.Text, whole.String()[:100]) || !strings.HasSuffix(out.Text, whole.String()[whole.Len()-100:]) ||
			out.Omitted != omitted || !strings.Contains(out.Text, fmt.Sprintf("\n[... %d bytes omitted ...]\n", omitted)) {
			t.Errorf("in parts of %d: omitted %d, want %d: %q", part, out.Omitted, omitted, out.Text)
		}
	}
}

func TestCaptureOfWhatJustFits(t *testing.T) {
	t.Parallel()
	for n := range 230 {
		c := NewCapture(markRoom + 200)
		text := strings.Repeat("x", n)
		_, _ = c.Write([]byte(text))
		if out := c.Output(); n <= 200 && (out.Text != text || out.Omitted != 0) || n > 200 && out.Omitted != int64(n-200) {
			t.Errorf("%d bytes: kept %d, omitted %d", n, len(out.Text), out.Omitted)
		}
	}
}

func TestCaptureCutsNoCharacter(t *testing.T) {
	t.Parallel()
	for limit := markRoom; limit < markRoom+40; limit++ {
		c := NewCapture(limit)
		_, _ = c.Write([]byte(strings.Repeat("日", 50)))
		out := c.Output()
		if strings.Contains(out.Text, replacement) || !utf8.ValidString(out.Text) || len(out.Text) > limit ||
			int64(strings.Count(out.Text, "日")*3)+out.Omitted != 150 {
			t.Errorf("limit %d: %q, omitted %d", limit, out.Text, out.Omitted)
		}
	}
}

func TestLastLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "\n\n": "", "a": "a", "a\n b \n\n\t\n": "b", "a\nb": "b"} {
		if got := LastLine(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func BenchmarkCapture(b *testing.B) {
	for name, unit := range map[string]string{"ascii": "2026-10-26 02:00:07 charged sub_07\n", "colour": "\x1b[32mok\x1b[0m sub_07 任务\n"} {
		b.Run(name, func(b *testing.B) {
			buf := []byte(strings.Repeat(unit, 64<<10/len(unit)))
			c := NewCapture(daybook.MaxOutputBytes)
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				_, _ = c.Write(buf)
			}
		})
	}
}
