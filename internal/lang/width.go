package lang

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Width returns how many columns of a terminal a text takes: two for Chinese, Japanese and Korean characters, full-width
// forms and emoji, none for marks that stand on the character before and for control characters, else one. What a
// terminal makes of emoji is its own affair; two is what most do.
func Width(s string) int {
	n := 0
	for s != "" {
		g := first(s)
		n += columns(g)
		s = s[len(g):]
	}
	return n
}

// Pad fills a text up with spaces to a number of columns.
func Pad(s string, to int) string {
	return s + strings.Repeat(" ", max(to-Width(s), 0))
}

// Cut shortens a text to at most so many columns, with "…" where something was left out. It never cuts through what people
// see as one character.
func Cut(s string, to int) string {
	return cut(s, to, columns)
}

// CutChars shortens a text to at most so many characters as people count them.
func CutChars(s string, to int) string {
	return cut(s, to, func(string) int { return 1 })
}

func cut(s string, to int, cost func(string) int) string {
	const dots = "…"
	used, keep := 0, 0 // keep: the bytes that leave room for the dots
	for rest := s; rest != ""; {
		g := first(rest)
		c := cost(g)
		if used+c > to {
			if to < 1 {
				return ""
			}
			return strings.TrimRight(s[:keep], " ") + dots
		}
		used += c
		rest = rest[len(g):]
		if used <= to-1 {
			keep = len(s) - len(rest)
		}
	}
	return s
}

// Chars counts characters as people do.
func Chars(s string) int {
	n := 0
	for ; s != ""; n++ {
		s = s[len(first(s)):]
	}
	return n
}

// columns is the width of one character as people see it.
func columns(g string) int {
	r, _ := utf8.DecodeRuneInString(g)
	switch {
	case unicode.IsControl(r) || zeroWidth(r):
		return 0
	case wide(r) || strings.ContainsRune(g, emojiStyle):
		return 2
	}
	return 1
}

const (
	joiner     = '\u200D' // joins emoji to one
	emojiStyle = '\uFE0F' // shows the character before it as an emoji
	// characterBytes bounds one character: a hundred marks on one letter are not one any more.
	characterBytes = 64
)

// first returns the first character of a text as people see it: a base with its marks, a pair of regional letters, emoji
// joined to one, a Korean syllable in parts. It is the part of Unicode's rules (UAX 29) that names, errors and payloads
// show; what it does not know counts as a character of its own, so that nothing is lost.
func first(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if r == '\r' && strings.HasPrefix(s[n:], "\n") {
		return s[:n+1]
	}
	if unicode.IsControl(r) {
		return s[:n]
	}
	regional, last := regionalLetter(r), r
	for n < len(s) && n < characterBytes {
		next, size := utf8.DecodeRuneInString(s[n:])
		switch {
		case next == joiner || mark(next) || skinTone(next):
			regional = false
		case last == joiner && emoji(next):
		case regional && regionalLetter(next):
			regional = false
		case hangul(last, next):
		default:
			return s[:n]
		}
		last = next
		n += size
	}
	return s[:n]
}

func mark(r rune) bool { return unicode.Is(unicode.M, r) }

func skinTone(r rune) bool { return r >= 0x1F3FB && r <= 0x1F3FF }

func regionalLetter(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

func emoji(r rune) bool { return r >= 0x1F000 && r <= 0x1FAFF || r >= 0x2190 && r <= 0x2BFF }

// hangul reports whether two parts of a Korean syllable belong together: leading consonant, vowel, trailing consonant.
func hangul(a, b rune) bool {
	lead, vowel, trail := a >= 0x1100 && a <= 0x115F, b >= 0x1160 && b <= 0x11A7, b >= 0x11A8 && b <= 0x11FF
	switch {
	case lead:
		return b >= 0x1100 && b <= 0x115F || vowel || b >= 0xAC00 && b <= 0xD7A3
	case a >= 0x1160 && a <= 0x11A7, a >= 0xAC00 && a <= 0xD7A3:
		return vowel || trail
	}
	return a >= 0x11A8 && a <= 0x11FF && trail
}

func zeroWidth(r rune) bool {
	return mark(r) || unicode.Is(unicode.Cf, r) && r != '\u00AD'
}

// wide has what East Asian Width (UAX 11) calls wide or full-width, as ranges without their small holes.
func wide(r rune) bool {
	if r < 0x1100 {
		return false
	}
	for _, w := range wides {
		if r < w[0] {
			return false
		}
		if r <= w[1] {
			return true
		}
	}
	return false
}

var wides = [][2]rune{
	{0x1100, 0x115F}, {0x231A, 0x231B}, {0x2329, 0x232A}, {0x23E9, 0x23EC}, {0x23F0, 0x23F0}, {0x23F3, 0x23F3}, {0x25FD, 0x25FE},
	{0x2614, 0x2615}, {0x2648, 0x2653}, {0x267F, 0x267F}, {0x2693, 0x2693}, {0x26A1, 0x26A1}, {0x26AA, 0x26AB}, {0x26BD, 0x26BE},
	{0x26C4, 0x26C5}, {0x26CE, 0x26CE}, {0x26D4, 0x26D4}, {0x26EA, 0x26EA}, {0x26F2, 0x26F3}, {0x26F5, 0x26F5}, {0x26FA, 0x26FA},
	{0x26FD, 0x26FD}, {0x2705, 0x2705}, {0x270A, 0x270B}, {0x2728, 0x2728}, {0x274C, 0x274C}, {0x274E, 0x274E}, {0x2753, 0x2755},
	{0x2757, 0x2757}, {0x2795, 0x2797}, {0x27B0, 0x27B0}, {0x27BF, 0x27BF}, {0x2B1B, 0x2B1C}, {0x2B50, 0x2B50}, {0x2B55, 0x2B55},
	{0x2E80, 0x303E}, {0x3041, 0x33FF}, {0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xA000, 0xA4CF}, {0xA960, 0xA97F}, {0xAC00, 0xD7A3},
	{0xF900, 0xFAFF}, {0xFE10, 0xFE19}, {0xFE30, 0xFE6F}, {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x16FE0, 0x18DFF}, {0x1B000, 0x1B2FF},
	{0x1F004, 0x1F004}, {0x1F0CF, 0x1F0CF}, {0x1F18E, 0x1F18E}, {0x1F191, 0x1F19A}, {0x1F1E6, 0x1F202}, {0x1F210, 0x1F23B}, {0x1F240, 0x1F248},
	{0x1F250, 0x1F251}, {0x1F260, 0x1F265}, {0x1F300, 0x1F320}, {0x1F32D, 0x1F335}, {0x1F337, 0x1F37C}, {0x1F37E, 0x1F393}, {0x1F3A0, 0x1F3CA},
	{0x1F3CF, 0x1F3D3}, {0x1F3E0, 0x1F3F0}, {0x1F3F4, 0x1F3F4}, {0x1F3F8, 0x1F43E}, {0x1F440, 0x1F440}, {0x1F442, 0x1F4FC}, {0x1F4FF, 0x1F53D},
	{0x1F54B, 0x1F54E}, {0x1F550, 0x1F567}, {0x1F57A, 0x1F57A}, {0x1F595, 0x1F596}, {0x1F5A4, 0x1F5A4}, {0x1F5FB, 0x1F64F}, {0x1F680, 0x1F6C5},
	{0x1F6CC, 0x1F6CC}, {0x1F6D0, 0x1F6D2}, {0x1F6D5, 0x1F6D7}, {0x1F6DC, 0x1F6DF}, {0x1F6EB, 0x1F6EC}, {0x1F6F4, 0x1F6FC}, {0x1F7E0, 0x1F7EB},
	{0x1F7F0, 0x1F7F0}, {0x1F90C, 0x1F93A}, {0x1F93C, 0x1F945}, {0x1F947, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD},
}
