package runner

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-run/daybook"
)

func printed(t *testing.T, dir string) string {
	t.Helper()
	f, err := quick().Output(dir)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// TestOutputIsFollowed: while a command works, its whole lines can be read, without its secrets, and the rest when it has
// ended.
func TestOutputIsFollowed(t *testing.T) {
	t.Parallel()
	o := order(t, `printf 'first\ntoken hunter'; printf '22\nhalf'; until test -e go; do sleep 0.02; done; echo " a line"; printf 'no end'`)
	o.Job.Dir = t.TempDir()
	o.Secrets = []string{"hunter22"}
	ended := make(chan daybook.Outcome)
	go func() { ended <- quick().Run(t.Context(), o) }()
	const sofar = "first\ntoken ***\n"
	eventually(t, "the first lines", func() bool { return printed(t, o.Dir) == sofar })
	if err := os.WriteFile(filepath.Join(o.Job.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out := <-ended
	want(t, out, daybook.ResultDone, "")
	if got := printed(t, o.Dir); got != sofar+"half a line\nno end" {
		t.Errorf("%q", got)
	}
	if info, err := os.Stat(filepath.Join(o.Dir, liveFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

// TestWhatIsFollowedIsBounded: a line too long to mask is left out whole, and a flood ends the following, not the command.
func TestWhatIsFollowedIsBounded(t *testing.T) {
	t.Parallel()
	o := order(t, `head -c 20000 /dev/zero | tr '\0' x; echo; echo short; yes 0123456789012345678901234567890123456789 | head -n 50000; echo last`)
	want(t, run(t, o), daybook.ResultDone, "")
	got := printed(t, o.Dir)
	if !strings.HasPrefix(got, markLiveLine+"short\n0123") || !strings.HasSuffix(got, "\n"+markLiveFull) || len(got) > maxLive+len(markLiveFull) || len(got) < maxLive/2 {
		t.Errorf("%d bytes: %.100q … %q", len(got), got, got[max(len(got)-100, 0):])
	}
}

// TestOutputThatCannotBeFollowed: the command works all the same.
func TestOutputThatCannotBeFollowed(t *testing.T) {
	t.Parallel()
	o := order(t, `echo out`)
	if err := os.MkdirAll(filepath.Join(o.Dir, liveFile), 0o700); err != nil {
		t.Fatal(err)
	}
	out := run(t, o)
	want(t, out, daybook.ResultDone, "")
	if out.Output.Text != "out\n" {
		t.Errorf("%q", out.Output.Text)
	}
	o.Dir = ""
	want(t, run(t, o), daybook.ResultDone, "")
}
