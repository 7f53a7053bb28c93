package importer

import (
	"errors"
	"testing"
	"time"

	"github.com/daybook-run/daybook/config"
)

// noon is when the tests are played.
var noon = time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)

func options() Options {
	return Options{Zone: "Europe/Berlin", Owner: "me", Now: noon,
		Home: func(user string) string {
			return map[string]string{"me": "/home/me", "": "/home/me", "www-data": "/var/www", "root": "/root"}[user]
		},
		Scripts: func(dir string) ([]string, error) {
			if dir == "/etc/cron.daily" {
				return []string{"dpkg", "logrotate"}, nil
			}
			return nil, errors.New("not there")
		}}
}

// table imports the crontab of a user.
func table(text string) Result {
	return Crontab([]Table{{Name: "crontab", Text: []byte(text), User: "me", Edit: "crontab -e"}}, "daybook import crontab", options())
}

// read reads what was written; it must pass check.
func read(t *testing.T, r Result) *config.File {
	t.Helper()
	f, err := config.Parse("daybook.yaml", r.YAML)
	if err != nil {
		t.Fatalf("it does not pass check: %v\n%s", err, r.YAML)
	}
	if len(f.Jobs) != len(r.Jobs) {
		t.Fatalf("%d jobs of %d", len(f.Jobs), len(r.Jobs))
	}
	for i := range f.Jobs {
		if j := &f.Jobs[i]; !j.Paused || j.Name != r.Jobs[i] {
			t.Errorf("job %s: paused %t", j.Name, j.Paused)
		}
	}
	return f
}
