package daybook

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Keys and their parts; "-" in the last columns: refused.
const keys = `
# key                                   | job       | window            | n | subject
renew:2026-10-26                        | renew     | 2026-10-26        | 1 |
renew:2026-10-26/sub_42                 | renew     | 2026-10-26        | 1 | sub_42
renew:2026-10-26~2                      | renew     | 2026-10-26        | 2 |
renew:2026-10-26~12/sub_42              | renew     | 2026-10-26        | 12 | sub_42
weekly:2026-W43                         | weekly    | 2026-W43          | 1 |
sync:2026-03-08T02:00                   | sync      | 2026-03-08T02:00  | 1 |
sync:2026-10-25T01:00:30Z               | sync      | 2026-10-25T01:00:30Z | 1 |
welcome:u_9                             | welcome   | u_9               | 1 |
welcome:order%2F7                       | welcome   | order%2F7         | 1 |
a:b/c%20d                               | a         | b                 | 1 | c%20d
a:b/@._+=-                              | a         | b                 | 1 | @._+=-
0_-x:1                                  | 0_-x      | 1                 | 1 |
renew                                   | -         |                   |   |
:2026-10-26                             | -         |                   |   |
renew:                                  | -         |                   |   |
renew:/sub                              | -         |                   |   |
renew:~2                                | -         |                   |   |
renew:2026-10-26/                       | -         |                   |   |
renew:2026-10-26/a/b                    | -         |                   |   |
renew:2026-10-26/a:b                    | -         |                   |   |
renew:2026-10-26/a~2                    | -         |                   |   |
renew:2026-10-26/a#b                    | -         |                   |   |
renew:2026-10-26#charge                 | -         |                   |   |
renew:2026-10-26~                       | -         |                   |   |
renew:2026-10-26~0                      | -         |                   |   |
renew:2026-10-26~1                      | -         |                   |   |
renew:2026-10-26~02                     | -         |                   |   |
renew:2026-10-26~+2                     | -         |                   |   |
renew:2026-10-26~-2                     | -         |                   |   |
renew:2026-10-26~2~3                    | -         |                   |   |
renew:2026-10-26~99999999999999999999   | -         |                   |   |
Renew:2026-10-26                        | -         |                   |   |
-renew:2026-10-26                       | -         |                   |   |
re new:2026-10-26                       | -         |                   |   |
renew:2026 10                           | -         |                   |   |
renew:ü                                 | -         |                   |   |
renew:a/%                               | -         |                   |   |
renew:a/%2                              | -         |                   |   |
renew:a/%2f                             | -         |                   |   |
renew:a/%41                             | -         |                   |   |
renew:a/%zz                             | -         |                   |   |
`

func TestParseKey(t *testing.T) {
	eachLine(t, keys, 5, func(t *testing.T, cells []string) {
		p, err := ParseKey(cells[0])
		if cells[1] == "-" {
			if !errors.Is(err, ErrInvalid) || p != (KeyParts{}) {
				t.Errorf("%+v, %v", p, err)
			}
			if Key(cells[0]).Parts() != (KeyParts{}) {
				t.Error("a malformed key has parts")
			}
			return
		}
		want := KeyParts{Job: cells[1], Window: cells[2], N: number(t, cells[3]), Subject: cells[4]}
		if err != nil || p != want {
			t.Errorf("%+v, %v, want %+v", p, err, want)
		}
		if p.Key() != Key(cells[0]) || p.Key().Parts() != p || p.Key().Job() != p.Job {
			t.Errorf("written again: %s", p.Key())
		}
	})
}

func TestKeyLimits(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		key string
		ok  bool
	}{
		{long(64) + ":1", true},
		{long(65) + ":1", false},
		{"a:" + long(128), true},
		{"a:" + long(129), false},
		{"a:b/" + long(128), true},
		{"a:b/" + long(129), false},
		{long(64) + ":" + long(70) + "/" + long(64), true}, // 200
		{long(64) + ":" + long(70) + "/" + long(65), false},
		{"a:" + strings.Repeat("%20", 42), true},
		{"a:" + strings.Repeat("%20", 43), false},
	} {
		if _, err := ParseKey(c.key); (err == nil) != c.ok || err != nil && CodeOf(err) != CodeInvalid {
			t.Errorf("%d bytes, %s…: %v", len(c.key), Clip(c.key, 20), err)
		}
	}
}

func TestWireKeys(t *testing.T) {
	const k = Key("renew:2026-10-26/sub_42")
	for _, c := range []struct {
		step       string
		generation int
		want       string
	}{
		{StepRun, 1, "renew:2026-10-26/sub_42"},
		{StepRun, 0, "renew:2026-10-26/sub_42"},
		{StepRun, 2, "renew:2026-10-26/sub_42#run@2"},
		{"charge", 1, "renew:2026-10-26/sub_42#charge"},
		{"charge", 2, "renew:2026-10-26/sub_42#charge@2"},
		{"charge", 11, "renew:2026-10-26/sub_42#charge@11"},
	} {
		if got := k.WireKey(c.step, c.generation); got != c.want {
			t.Errorf("%s, %d: %s, want %s", c.step, c.generation, got, c.want)
		}
	}
	if err := CheckWireKey(strings.Repeat("x", MaxWireKeyBytes)); err != nil {
		t.Error(err)
	}
	if err := CheckWireKey(strings.Repeat("x", MaxWireKeyBytes+1)); CodeOf(err) != CodePermanent || HintOf(err) == "" {
		t.Error(err)
	}
	r := runFrom(t, "once")
	if r.WireKey() != "renew:2026-10-26" {
		t.Error(r.WireKey())
	}
	if r = runFrom(t, "once begun@2"); r.WireKey() != "renew:2026-10-26#run@2" {
		t.Error(r.WireKey())
	}
}

// Two effects never share a wire key, and a wire key is no key of another run.
func TestWireKeysDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[a-z@._]{1,4}(@[1-3])?`)
		one := func() (Key, string, int) {
			k := KeyParts{Job: "a", Window: part.Draw(t, "window"), N: rapid.IntRange(1, 3).Draw(t, "n"), Subject: part.Draw(t, "subject")}.Key()
			step := rapid.SampledFrom([]string{StepRun, "charge", "extend"}).Draw(t, "step")
			return k, step, rapid.IntRange(1, 3).Draw(t, "generation")
		}
		k1, s1, g1 := one()
		k2, s2, g2 := one()
		same := k1 == k2 && s1 == s2 && g1 == g2
		if w1, w2 := k1.WireKey(s1, g1), k2.WireKey(s2, g2); (w1 == w2) != same {
			t.Fatalf("%s of %s %s %d and %s of %s %s %d", w1, k1, s1, g1, w2, k2, s2, g2)
		}
	})
}

func TestSubjects(t *testing.T) {
	for plain, want := range map[string]string{
		"sub_42":        "sub_42",
		"a@b.example":   "a@b.example",
		"a+b=c-d":       "a+b=c-d",
		"a b":           "a%20b",
		"a/b":           "a%2Fb",
		"a:b~2#c":       "a%3Ab%7E2%23c",
		"100%":          "100%25",
		"ü":             "%C3%BC",
		"\x00\xff":      "%00%FF",
		"用户":            "%E7%94%A8%E6%88%B7",
		"%41":           "%2541",
		" lead & tail ": "%20lead%20%26%20tail%20",
	} {
		got, err := EncodeSubject(plain)
		if err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", plain, got, err, want)
		}
		back, err := DecodeSubject(got)
		if err != nil || back != plain {
			t.Errorf("%q comes back as %q, %v", plain, back, err)
		}
	}
	for _, bad := range []string{"", strings.Repeat("x", 129), strings.Repeat("ü", 22)} {
		if got, err := EncodeSubject(bad); !errors.Is(err, ErrInvalid) || got != "" {
			t.Errorf("%q: %q, %v", Clip(bad, 20), got, err)
		}
	}
	for _, bad := range []string{"", "a b", "%", "%2", "%2g", "%c3", "%41", "a/b", strings.Repeat("x", 129)} {
		if got, err := DecodeSubject(bad); !errors.Is(err, ErrInvalid) || got != "" {
			t.Errorf("%q: %q, %v", Clip(bad, 20), got, err)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{
		{"short", 5, "short"}, {"longer", 5, "lo…"}, {"üüüü", 6, "ü…"}, {"üüüü", 7, "üü…"}, {"用户用户", 8, "用…"}, {"longer", 3, "…"},
		{"longer", 2, "lo"}, {"longer", 0, ""}, {"üüü", 1, ""}, {"", 0, ""},
	} {
		if got := Clip(c.s, c.n); got != c.want || len(got) > c.n {
			t.Errorf("%q to %d: %q, want %q", c.s, c.n, got, c.want)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	for line := range strings.Lines(keys) {
		key, _, _ := strings.Cut(line, "|")
		f.Add(strings.TrimSpace(key))
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParseKey(s)
		if err != nil {
			if CodeOf(err) != CodeInvalid || len(err.Error()) > 400 {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		if string(p.Key()) != s || p.Key().Parts() != p || p.N < 1 {
			t.Fatalf("%q is %+v is %q", s, p, p.Key())
		}
		if len(s) > MaxKeyBytes || CheckName(p.Job) != nil || strings.ContainsAny(s, "# \x00") {
			t.Fatalf("%q", s)
		}
		for _, c := range []byte(s) {
			if c >= utf8.RuneSelf {
				t.Fatalf("%q is not ASCII", s)
			}
		}
		if p.Subject != "" {
			plain, err := DecodeSubject(p.Subject)
			if err != nil {
				t.Fatalf("%q: %v", p.Subject, err)
			}
			if again, err := EncodeSubject(plain); err != nil || again != p.Subject {
				t.Fatalf("%q is %q is %q, %v", p.Subject, plain, again, err)
			}
		}
	})
}

func FuzzEncodeSubject(f *testing.F) {
	for _, s := range []string{"sub_42", "a b", "ü", "\xff", "%41", strings.Repeat("/", 43)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := EncodeSubject(s)
		if err != nil {
			if s != "" && len(s)*3 <= MaxSubjectBytes {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		back, err := DecodeSubject(e)
		if err != nil || back != s {
			t.Fatalf("%q is %q is %q, %v", s, e, back, err)
		}
		if p, err := ParseKey("a:" + e + "/" + e); len(e) < 90 && (err != nil || p.Subject != e || p.Window != e) {
			t.Fatalf("%q in a key: %+v, %v", e, p, err)
		}
	})
}

func FuzzDecodeSubject(f *testing.F) {
	for _, s := range []string{"sub_42", "%20", "%2", "%41", "a%FF"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		plain, err := DecodeSubject(s)
		if err != nil {
			return
		}
		if again, err := EncodeSubject(plain); err != nil || again != s {
			t.Fatalf("%q is %q is %q, %v", s, plain, again, err)
		}
	})
}
