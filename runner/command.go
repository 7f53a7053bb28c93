package runner

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/daybook-run/daybook"
)

// shellPath runs the text of `shell`.
const shellPath = "/bin/sh"

// ourNames are the variables that speak of one attempt. What Daybook itself was started with under these names belongs
// to another attempt and is never passed on.
var ourNames = []string{
	"DAYBOOK_WIRE_KEY", "DAYBOOK_JOB", "DAYBOOK_KEY", "DAYBOOK_SUBJECT", "DAYBOOK_TRIGGER", "DAYBOOK_WINDOW",
	"DAYBOOK_WINDOW_START", "DAYBOOK_WINDOW_END", "DAYBOOK_BUSINESS_DATE", "DAYBOOK_ATTEMPT", "DAYBOOK_FENCE",
	"DAYBOOK_TOKEN", "DAYBOOK_PAYLOAD_FILE", "DAYBOOK_RESULT_FILE", "DAYBOOK_DRY_RUN",
	"DAYBOOK_UNDO", "DAYBOOK_EFFECT_KEY", "DAYBOOK_EFFECT_STEP", "DAYBOOK_EFFECT_RESULT",
}

// command makes ready to start what c says, for o. An error with CodePermanent says that it can never be started so;
// any other, that it cannot be now.
func command(o daybook.Order, c daybook.Command, as identity, files map[string]string) (*exec.Cmd, error) {
	if err := checkDir(o.Job.Dir); err != nil {
		return nil, err
	}
	env := environment(o, as, files)
	cmd := &exec.Cmd{Dir: o.Job.Dir, Env: flatten(env), SysProcAttr: &syscall.SysProcAttr{
		// A session of its own is a process group of its own without a terminal: nothing can stop and wait for
		// somebody at the keyboard that Daybook was started from.
		Setsid:     true,
		Credential: as.credential,
	}}
	if c.Shell != "" {
		cmd.Path, cmd.Args = shellPath, []string{"sh", "-c", c.Shell}
		return cmd, nil
	}
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return nil, permanent(nil, "the command is empty")
	}
	for _, arg := range c.Argv {
		cmd.Args = append(cmd.Args, expand(arg, o))
	}
	path, err := lookPath(cmd.Args[0], env["PATH"])
	cmd.Path = path
	return cmd, err
}

// environment returns what the command finds in its environment. Later sources win: what Daybook was started with, the
// user's home, the job's env, the order's, and what speaks of this attempt.
func environment(o daybook.Order, as identity, files map[string]string) map[string]string {
	env := make(map[string]string)
	for _, pair := range os.Environ() {
		if name, value, ok := strings.Cut(pair, "="); ok && name != "" {
			env[name] = value
		}
	}
	for _, name := range ourNames {
		delete(env, name)
	}
	if filepath.IsAbs(o.Job.Dir) {
		env["PWD"] = o.Job.Dir
	}
	maps.Copy(env, as.env)
	maps.Copy(env, o.Job.Env)
	maps.Copy(env, o.Env)
	maps.DeleteFunc(env, func(name, _ string) bool { return strings.HasPrefix(name, envOfHTTP) }) // secrets of requests
	b := o.Run.Given()
	for name, value := range map[string]string{
		"DAYBOOK_WIRE_KEY":      o.WireKey,
		"DAYBOOK_JOB":           o.Run.Job,
		"DAYBOOK_KEY":           string(o.Run.Key),
		"DAYBOOK_SUBJECT":       o.Run.Subject,
		"DAYBOOK_TRIGGER":       string(o.Run.FirstSource),
		"DAYBOOK_WINDOW":        o.Run.Window.Label,
		"DAYBOOK_WINDOW_START":  instant(b.Start),
		"DAYBOOK_WINDOW_END":    instant(b.End),
		"DAYBOOK_BUSINESS_DATE": o.Run.Window.Date,
		"DAYBOOK_ATTEMPT":       strconv.Itoa(o.Attempt),
		"DAYBOOK_FENCE":         strconv.FormatInt(o.Fence, 10),
		"DAYBOOK_UNDO":          undoFlag(o.Run),
		"TRACEPARENT":           traceparent(o),
	} {
		if value == "" { // absent rather than empty: a script under `set -u` then notices
			delete(env, name)
		} else {
			env[name] = value
		}
	}
	if len(o.Rights) > 0 { // of one attempt only: what another was told leads elsewhere
		delete(env, "DAYBOOK_SERVER")
		delete(env, "DAYBOOK_DB")
	}
	maps.Copy(env, o.Rights)
	maps.Copy(env, files)
	return env
}

// undoFlag tells a probe that it is asked about an undo.
func undoFlag(r *daybook.Run) string {
	if r.Key.IsUndo() {
		return "1"
	}
	return ""
}

func flatten(env map[string]string) []string {
	pairs := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		pairs = append(pairs, name+"="+env[name])
	}
	return pairs
}

// lookPath finds the program in the PATH that the command itself will have. Entries that are not absolute are passed
// over: what they name depends on a directory that somebody else may write to.
func lookPath(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	var denied error
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, name)
		info, err := os.Stat(file)
		switch {
		case err != nil || info.IsDir():
		case info.Mode()&0o111 == 0:
			denied = permanent(nil, "could not start %s: %s is not executable", quote(name), quote(file))
		default:
			return file, nil
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", permanent(nil, "could not start %s: not found in PATH", quote(name)).
		WithHint("write its whole path, or set PATH under env")
}

func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return permanent(nil, "could not start: dir %s does not exist", quote(dir))
	case err != nil:
		return permanent(nil, "could not start: dir %s: %s", quote(dir), reason(err))
	case !info.IsDir():
		return permanent(nil, "could not start: dir %s is not a directory", quote(dir))
	}
	return nil
}

// identity is the user that a command runs as. The zero value is the user of Daybook.
type identity struct {
	credential *syscall.Credential
	env        map[string]string
}

// identityOf looks the user up. Names that do not exist, and a Daybook that may not change its user, are permanent.
func identityOf(name string) (identity, error) {
	if name == "" {
		return identity{}, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		if _, numeric := strconv.ParseUint(name, 10, 32); numeric == nil {
			u, err = user.LookupId(name)
		}
	}
	var unknownName user.UnknownUserError
	var unknownID user.UnknownUserIdError
	if errors.As(err, &unknownName) || errors.As(err, &unknownID) {
		return identity{}, permanent(nil, "could not start: user %s does not exist", quote(name))
	}
	if err != nil {
		return identity{}, unavailable(err, "look up user %s", quote(name))
	}
	env := map[string]string{"HOME": u.HomeDir, "USER": u.Username, "LOGNAME": u.Username}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return identity{}, permanent(nil, "could not start: user %s has no numeric id", quote(name))
	}
	if os.Geteuid() != 0 {
		if int(uid) == os.Geteuid() {
			return identity{env: env}, nil
		}
		return identity{}, permanent(nil, "could not start as user %s: only root may change the user", quote(name)).
			WithHint("run daybook as root, or remove user from the job")
	}
	credential, err := credentialOf(u, uint32(uid))
	return identity{credential: credential, env: env}, err
}

func credentialOf(u *user.User, uid uint32) (*syscall.Credential, error) {
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, permanent(nil, "could not start: user %s has no numeric group", quote(u.Username))
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, unavailable(err, "look up the groups of user %s", quote(u.Username))
	}
	groups := make([]uint32, 0, len(ids))
	for _, id := range ids {
		if g, err := strconv.ParseUint(id, 10, 32); err == nil {
			groups = append(groups, uint32(g))
		}
	}
	return &syscall.Credential{Uid: uid, Gid: uint32(gid), Groups: groups}, nil
}

// startFault reads the error of a start. What is short for the moment may pass; all else is the definition's fault.
func startFault(cmd *exec.Cmd, err error) error {
	for _, passing := range []syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ETXTBSY, syscall.EINTR, syscall.EIO} {
		if errors.Is(err, passing) {
			return unavailable(nil, "could not start %s: %s", quote(cmd.Args[0]), reason(err))
		}
	}
	why := reason(err)
	if errors.Is(err, syscall.ENOENT) {
		path := cmd.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(cmd.Dir, path)
		}
		if _, statErr := os.Stat(path); statErr == nil {
			why = daybook.NotFound("the interpreter it names in its first line does not exist")
		}
	}
	return permanent(nil, "could not start %s: %s", quote(cmd.Args[0]), why)
}

func quote(s string) string { return strconv.Quote(daybook.Clip(SafeText([]byte(s)), 200)) }

func permanent(err error, format string, args ...any) *daybook.Error {
	return daybook.New(daybook.CodePermanent, format, args...).Because(err)
}

func unavailable(err error, format string, args ...any) *daybook.Error {
	return daybook.New(daybook.CodeUnavailable, format, args...).Because(err)
}
