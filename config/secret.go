package config

import (
	"log/slog"
	"regexp"
	"strings"

	"github.com/daybook-run/daybook"
)

// Secret is a value of the file that may be secret: "${NAME}" for a variable of the environment, "file:/path" for a
// file, or a plain text. It is resolved only when asked, and prints as the reference that it is, or masked.
type Secret struct{ text string }

// MaxSecretBytes bounds the file of a secret.
const MaxSecretBytes = 64 << 10

var envReference = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// NewSecret returns the secret that a text in the file stands for.
func NewSecret(text string) Secret { return Secret{text} }

// isReference reports whether a text says where a value is, instead of being it.
func isReference(text string) bool {
	return envReference.MatchString(text) || strings.HasPrefix(text, "file:/")
}

// IsReference reports whether s says where the value is, instead of being it.
func (s Secret) IsReference() bool { return isReference(s.text) }

// IsZero reports whether there is nothing.
func (s Secret) IsZero() bool { return s.text == "" }

// String returns the reference, or the text with what looks like a password masked.
func (s Secret) String() string {
	if s.IsReference() {
		return s.text
	}
	return Mask(s.text)
}

// GoString is String: %#v must not print a secret either.
func (s Secret) GoString() string { return s.String() }

// MarshalText is String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Vault is where references are looked up.
type Vault struct {
	LookupEnv func(name string) (string, bool)
	ReadFile  func(path string) ([]byte, error)
}

// Resolve returns the value of s. Errors have CodeInvalid and name the reference, never a value: a variable that is not
// set or empty, a file that cannot be read, is empty, is too long or holds a NUL byte. Line breaks at the end of a file
// do not count.
func (s Secret) Resolve(v Vault) (string, error) {
	if m := envReference.FindStringSubmatch(s.text); m != nil {
		value, ok := v.LookupEnv(m[1])
		if !ok {
			return "", daybook.Invalid("environment variable %s is not set", m[1]).
				WithHint("set it for the process that runs daybook: the file refers to it as ${%s}", m[1])
		}
		if value == "" {
			return "", daybook.Invalid("environment variable %s is empty", m[1]).
				WithHint("set it for the process that runs daybook: the file refers to it as ${%s}", m[1])
		}
		return value, nil
	}
	path, ok := strings.CutPrefix(s.text, "file:")
	if !ok || !s.IsReference() {
		return s.text, nil
	}
	b, err := v.ReadFile(path)
	if err != nil {
		return "", daybook.Invalid("read secret file %s", path).Because(err).WithHint("make it readable for the user that runs daybook")
	}
	value := strings.TrimRight(string(b), "\r\n")
	switch {
	case len(b) > MaxSecretBytes:
		return "", daybook.Invalid("secret file %s has %d bytes: at most %d are allowed", path, len(b), MaxSecretBytes)
	case value == "":
		return "", daybook.Invalid("secret file %s is empty", path)
	case strings.ContainsRune(value, 0):
		return "", daybook.Invalid("secret file %s holds a NUL byte", path).WithHint("it must be text")
	}
	return value, nil
}

// ResolveEnv returns the environment of a job with its references looked up. Errors are those of Secret.Resolve and
// name the variable of the job.
func ResolveEnv(env map[string]string, v Vault) (map[string]string, error) {
	out := make(map[string]string, len(env))
	for name, text := range env {
		value, err := Secret{text}.Resolve(v)
		if err != nil {
			return nil, daybook.New(daybook.CodeOf(err), "%s of the job", name).Because(err)
		}
		out[name] = value
	}
	return out, nil
}

// Mask replaces the password of a URL, and what stands behind password= and the like, by ***.
func Mask(text string) string {
	text = urlPassword.ReplaceAllString(text, "${1}***${3}")
	return namedSecret.ReplaceAllStringFunc(text, func(s string) string {
		m := namedSecret.FindStringSubmatch(s)
		return m[1] + "***"
	})
}
