package config

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/daybook-run/daybook"
)

// DefaultDatabase is the ledger of a file that names none.
const DefaultDatabase = "sqlite:daybook.db"

// CheckDatabase checks where a ledger is: sqlite:PATH, postgres://…, or a reference. A password that stands in the text
// is refused unless secrets are allowed there, as in the value that a reference led to. Errors have CodeInvalid and do
// not repeat the text.
func CheckDatabase(text string, secretAllowed bool) error {
	const forms = `write sqlite:daybook.db, postgres://user@host/name, "${NAME}" or "file:/path"`
	scheme, rest, _ := strings.Cut(text, ":")
	switch {
	case text == "":
		return daybook.Invalid("the database is empty").WithHint(forms)
	case isReference(text):
		return nil
	case strings.Contains(text, "${"):
		return daybook.Invalid("a reference stands for the whole database URL").
			WithHint(`write "${NAME}" alone and put the whole URL into that variable`)
	case scheme == "file":
		return daybook.Invalid("a secret file is named by its absolute path").WithHint(`write "file:/path"; a ledger in a file is sqlite:PATH`)
	case scheme == "sqlite":
		return checkSQLite(rest)
	case scheme == "postgres" || scheme == "postgresql":
		return checkPostgres(text, secretAllowed)
	case scheme == "mysql" || scheme == "mariadb":
		return daybook.Invalid("the ledger cannot be kept in %s", scheme).WithHint(forms)
	case strings.Contains(text, "host=") || strings.Contains(text, "dbname="):
		return daybook.Invalid("the database is not written as a URL").WithHint("write postgres://user@host/name")
	case strings.HasSuffix(text, ".db") || strings.HasSuffix(text, ".sqlite"):
		return daybook.Invalid("the database has no kind before its path").WithHint("write sqlite:%s", daybook.Clip(Mask(text), 80))
	}
	return daybook.Invalid("the database is of no known kind").WithHint(forms)
}

func checkSQLite(path string) error {
	switch {
	case path == "":
		return daybook.Invalid("sqlite: has no path").WithHint("write sqlite:daybook.db")
	case strings.Contains(path, ":memory:") || strings.Contains(path, "mode=memory"):
		return daybook.Invalid("a ledger in memory would forget which days are done").WithHint("write sqlite:daybook.db")
	case strings.HasPrefix(path, "//"):
		return daybook.Invalid("sqlite: takes a path, not a URL").WithHint("write sqlite:daybook.db or sqlite:/var/lib/daybook/daybook.db")
	case strings.ContainsAny(path, "?#\x00\n\r"):
		return daybook.Invalid("the path of the database holds a character that is not allowed").
			WithHint("'?' and '#' are refused: Daybook sets the options of the database itself")
	case strings.HasSuffix(path, "/"):
		return daybook.Invalid("the path of the database is a directory").WithHint("write sqlite:%sdaybook.db", path)
	}
	return nil
}

func checkPostgres(text string, secretAllowed bool) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" && u.Query().Get("host") == "" { // the error of url.Parse repeats the text
		return daybook.Invalid("the database URL cannot be read").WithHint("write postgres://user@host:5432/name; special characters of a name are percent-encoded")
	}
	if u.Path == "" || u.Path == "/" {
		return daybook.Invalid("the database URL has no database name").WithHint("write postgres://user@host/name")
	}
	if secretAllowed {
		return nil
	}
	_, inUser := u.User.Password()
	for name := range u.Query() {
		if strings.Contains(strings.ToLower(name), "passw") {
			inUser = true
		}
	}
	if inUser {
		return daybook.Invalid("the database URL holds a password").
			WithHint(`write "${NAME}" or "file:/path" and put the URL there, or leave the password out and use PGPASSFILE`)
	}
	return nil
}

// DatabaseURL returns where the ledger is, secrets included: sqlite: with a path, or postgres://. A relative path of
// SQLite counts from the directory of the file, not from the working directory: a crontab line and a service must not
// end up with two ledgers. Errors have CodeInvalid.
func (f *File) DatabaseURL(v Vault) (string, error) {
	text, err := f.Database.Resolve(v)
	if err != nil {
		return "", daybook.Invalid("database").Because(err)
	}
	if err := CheckDatabase(text, true); err != nil {
		return "", err
	}
	if f.Database.IsReference() && isReference(text) {
		return "", daybook.Invalid("database: %s leads to another reference", f.Database).WithHint("put the URL itself there")
	}
	if path, ok := strings.CutPrefix(text, "sqlite:"); ok {
		return "sqlite:" + f.Locate(path), nil
	}
	return text, nil
}

// Locate returns a path of the file as seen from the working directory: relative ones count from the directory in which
// the file lies.
func (f *File) Locate(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(f.Path), path)
}
