package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// account is the user a server runs as.
type account struct {
	name     string
	uid, gid int
}

// findPrograms returns the directory that holds initdb and postgres, of the newest version if there are several.
func findPrograms() (string, error) {
	var dirs []string
	// The server's programs are often not on the PATH, pg_config and psql usually are. What is on the PATH is what the
	// user chose.
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin",
		"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin",
	} {
		found, _ := filepath.Glob(pattern) // the only error is a bad pattern
		slices.SortFunc(found, func(a, b string) int { return number(b) - number(a) })
		dirs = append(dirs, found...)
	}
	for _, dir := range dirs {
		if executable(filepath.Join(dir, "initdb")) && executable(filepath.Join(dir, "postgres")) {
			return dir, nil
		}
	}
	return "", errors.New("PostgreSQL is not installed (no initdb and postgres found)")
}

// number returns the first number in a text: the version of what is installed at a path, or of a server.
func number(text string) int {
	digits := func(r rune) bool { return r < '0' || r > '9' }
	for _, field := range strings.FieldsFunc(text, digits) {
		n, _ := strconv.Atoi(field)
		return n
	}
	return 0
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// makeDir makes the directory of a server, in a parent where that is possible, owned by the user the server runs as.
func makeDir(parent string, user *account) (string, error) {
	if user == nil {
		return os.MkdirTemp(parent, "daybook-pgtest-")
	}
	// A temporary directory in a home of root's is closed to the server's user.
	for _, parent := range []string{parent, os.TempDir(), "/tmp", "/var/tmp"} {
		if !open(parent) {
			continue
		}
		dir, err := os.MkdirTemp(parent, "daybook-pgtest-")
		if err != nil {
			continue
		}
		return dir, os.Chown(dir, user.uid, user.gid)
	}
	return "", fmt.Errorf("no temporary directory is open to the user %s, as whom the server must run", user.name)
}

// open reports whether everybody may go to a directory.
func open(dir string) bool {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil || !filepath.IsAbs(dir) {
		return false
	}
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}
