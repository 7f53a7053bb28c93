package daybook

import (
	"strconv"
	"strings"
)

// Limits of names and keys, in bytes.
const (
	MaxNameBytes    = 64
	MaxKeyBytes     = 200
	MaxWireKeyBytes = 255
	MaxSubjectBytes = 128 // of a subject or an event id, after encoding
)

// StepRun is the name of the one effect that a whole attempt of an `effects: once` job without steps is.
const StepRun = "run"

// Key is the identity of a run, unique for ever: job:window[~n][/subject], at most MaxKeyBytes ASCII bytes. It is split
// at the first ':', then at the first '/'. "~2" and upwards is a deliberate further effect for the same window.
type Key string

// KeyParts are the parts of a key.
type KeyParts struct {
	Job     string
	Window  string // the label, without ~n
	N       int    // 1 unless the key ends its window with ~n
	Subject string // encoded; empty for a run without subject
	Undo    bool   // the key of an undo
}

// Key joins the parts. It does not check them; ParseKey does.
func (p KeyParts) Key() Key {
	var b strings.Builder
	b.Grow(len(p.Job) + len(p.Window) + len(p.Subject) + 6)
	b.WriteString(p.Job)
	b.WriteByte(':')
	b.WriteString(p.Window)
	if p.N > 1 {
		b.WriteByte('~')
		b.WriteString(strconv.Itoa(p.N))
	}
	if p.Subject != "" {
		b.WriteByte('/')
		b.WriteString(p.Subject)
	}
	if p.Undo {
		b.WriteString(undoMark)
	}
	return Key(b.String())
}

// ParseKey checks s and splits it. The label of the window is checked for its characters only: whether it names a
// window of the job is the calendar's to say. Errors have CodeInvalid.
func ParseKey(s string) (KeyParts, error) {
	var p KeyParts
	s, undo := strings.CutSuffix(s, undoMark)
	if len(s) > MaxKeyBytes {
		return p, Invalid("key of %d bytes: at most %d are allowed", len(s), MaxKeyBytes)
	}
	job, rest, ok := strings.Cut(s, ":")
	if !ok {
		return p, Invalid("key %q has no ':'", Clip(s, 80)).WithHint("a key is job:window, such as renew:2026-10-26 or renew:2026-10-26/sub_42")
	}
	if err := CheckName(job); err != nil {
		return p, Invalid("key %q", Clip(s, 80)).Because(err)
	}
	window, subject, hasSubject := strings.Cut(rest, "/")
	label, n, hasN := strings.Cut(window, "~")
	p = KeyParts{Job: job, Window: label, N: 1, Subject: subject, Undo: undo}
	if hasN {
		v, err := strconv.Atoi(n)
		if err != nil || v < 2 || strconv.Itoa(v) != n {
			return KeyParts{}, Invalid("key %q: after '~' stands a number from 2 on", Clip(s, 80))
		}
		p.N = v
	}
	if err := checkEncoded(label, Say("window"), ":"); err != nil {
		return KeyParts{}, Invalid("key %q", Clip(s, 80)).Because(err)
	}
	if hasSubject {
		if err := checkEncoded(subject, Say("subject"), ""); err != nil {
			return KeyParts{}, Invalid("key %q", Clip(s, 80)).Because(err)
		}
	}
	return p, nil
}

// Parts splits a key that is known to be well formed. A malformed key gives zero parts.
func (k Key) Parts() KeyParts {
	p, err := ParseKey(string(k))
	if err != nil {
		return KeyParts{}
	}
	return p
}

// Job returns the name before the first ':'.
func (k Key) Job() string {
	job, _, _ := strings.Cut(string(k), ":")
	return job
}

// WireKey returns what the far side gets as idempotency key for the named effect of k: key#step, or the key itself for
// StepRun. From generation 2 on, after a definite no, it is key#step@n (key#run@n). Generations count from 1. An undo has
// key#step~undo, and key#step~undo@n.
func (k Key) WireKey(step string, generation int) string {
	if k.IsUndo() {
		k, step = k.Base(), step+undoMark
	}
	switch {
	case generation <= 1 && step == StepRun:
		return string(k)
	case generation <= 1:
		return string(k) + "#" + step
	default:
		return string(k) + "#" + step + "@" + strconv.Itoa(generation)
	}
}

// CheckWireKey refuses a wire key that is longer than payment services take. Such an effect fails before it begins.
func CheckWireKey(wireKey string) error {
	if len(wireKey) > MaxWireKeyBytes {
		return New(CodePermanent, "wire key of %d bytes: at most %d are allowed", len(wireKey), MaxWireKeyBytes).
			WithHint("shorten the job name, the subject or the step name")
	}
	return nil
}

// CheckName checks the name of a job: [a-z0-9][a-z0-9_-]{0,63}. Errors have CodeInvalid.
func CheckName(name string) error {
	const rule = "a job name is 1 to 64 lower-case letters, digits, '_' and '-', and begins with a letter or digit"
	if name == "" {
		return Invalid("the job has no name").WithHint(rule)
	}
	if len(name) > MaxNameBytes {
		return Invalid("job name %q has %d bytes: at most %d are allowed", Clip(name, 40), len(name), MaxNameBytes).WithHint(rule)
	}
	for i, c := range name {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 && (c == '_' || c == '-') {
			continue
		}
		err := Invalid("job name %q: %q is not allowed at byte %d", Clip(name, 40), c, i+1)
		if other := nameLike(name); other != "" {
			return err.WithHint("write %s: a job name is lower-case letters, digits, '_' and '-', and begins with a letter or digit", other)
		}
		return err.WithHint(rule)
	}
	return nil
}

// nameLike returns the name that somebody meant who wrote one in capitals or with spaces, or "".
func nameLike(text string) string {
	name := strings.ToLower(strings.NewReplacer(" ", "-", ".", "-", "/", "-", ":", "-").Replace(text))
	if strings.ContainsFunc(name, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-') }) {
		return ""
	}
	return strings.TrimLeft(name, "-_")
}

// EncodeSubject writes a subject or event id in the alphabet of keys, [A-Za-z0-9._@+=-]; every other byte is
// percent-encoded with upper-case hex. Errors have CodeInvalid: empty, or longer than MaxSubjectBytes once encoded.
func EncodeSubject(s string) (string, error) {
	if s == "" {
		return "", Invalid("the subject is empty")
	}
	plain := true
	for i := range len(s) {
		if !subjectByte(s[i]) {
			plain = false
			break
		}
	}
	if !plain {
		var b strings.Builder
		for i := range len(s) {
			if c := s[i]; subjectByte(c) {
				b.WriteByte(c)
			} else {
				const hex = "0123456789ABCDEF"
				b.WriteByte('%')
				b.WriteByte(hex[c>>4])
				b.WriteByte(hex[c&15])
			}
		}
		s = b.String()
	}
	if len(s) > MaxSubjectBytes {
		return "", Invalid("subject %q has %d bytes: at most %d are allowed", Clip(s, 40), len(s), MaxSubjectBytes)
	}
	return s, nil
}

// DecodeSubject is the inverse of EncodeSubject.
func DecodeSubject(s string) (string, error) {
	if err := checkEncoded(s, Say("subject"), ""); err != nil {
		return "", err
	}
	if !strings.Contains(s, "%") {
		return s, nil
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		b = append(b, unhex(s[i+1])<<4|unhex(s[i+2]))
		i += 2
	}
	return string(b), nil
}

func subjectByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return strings.IndexByte("._@+=-", c) >= 0
}

// checkEncoded checks a part of a key: the subject alphabet, the extra bytes, and well-formed percent codes of bytes
// that need them, so that one subject has one encoding.
func checkEncoded(s string, what Text, extra string) error {
	if s == "" {
		return Invalid("the %s is empty", what)
	}
	if len(s) > MaxSubjectBytes {
		return Invalid("the %s has %d bytes: at most %d are allowed", what, len(s), MaxSubjectBytes)
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%':
			if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
				return Invalid("the %s %q has a broken %% code at byte %d", what, Clip(s, 40), i+1)
			}
			if v := unhex(s[i+1])<<4 | unhex(s[i+2]); subjectByte(v) {
				return Invalid("the %s %q encodes %q, which stands for itself", what, Clip(s, 40), v)
			}
			i += 2
		case !subjectByte(c) && strings.IndexByte(extra, c) < 0:
			return Invalid("the %s %q: %q is not allowed at byte %d", what, Clip(s, 40), c, i+1)
		}
	}
	return nil
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'A' && c <= 'F' }

func unhex(c byte) byte {
	if c >= 'A' {
		return c - 'A' + 10
	}
	return c - '0'
}

// Clip shortens s to at most n bytes for a message, at a rune boundary, with an ellipsis in place of the rest.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	dots := "…"
	if n < len(dots) {
		dots = ""
	}
	cut := max(n-len(dots), 0)
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + dots
}
