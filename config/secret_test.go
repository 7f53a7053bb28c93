package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

var vault = Vault{
	LookupEnv: func(name string) (string, bool) {
		v, ok := map[string]string{"URL": "postgres://u:hunter2@db/x", "EMPTY": "", "REF": "${URL}", "LITE": "sqlite:x.db"}[name]
		return v, ok
	},
	ReadFile: func(path string) ([]byte, error) {
		switch path {
		case "/run/pw":
			return []byte("hunter2\r\n"), nil
		case "/run/empty":
			return []byte("\n"), nil
		case "/run/nul":
			return []byte("a\x00b"), nil
		case "/run/big":
			return make([]byte, MaxSecretBytes+1), nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	},
}

func TestResolve(t *testing.T) {
	for _, c := range []struct{ text, want, fault string }{
		{"${URL}", "postgres://u:hunter2@db/x", ""},
		{"file:/run/pw", "hunter2", ""},
		{"plain", "plain", ""},
		{"", "", ""},
		{"${NOT SET}", "${NOT SET}", ""}, // no reference
		{"${MISSING}", "", "environment variable MISSING is not set"},
		{"${EMPTY}", "", "environment variable EMPTY is empty"},
		{"file:/run/none", "", "read secret file /run/none"},
		{"file:/run/empty", "", "is empty"},
		{"file:/run/nul", "", "NUL"},
		{"file:/run/big", "", "at most"},
	} {
		got, err := NewSecret(c.text).Resolve(vault)
		if got != c.want || (c.fault == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%q: %q, %v", c.text, got, err)
		}
		if err != nil && daybook.CodeOf(err) != daybook.CodeInvalid {
			t.Errorf("%q: code %q", c.text, daybook.CodeOf(err))
		}
	}
}

func TestResolveEnv(t *testing.T) {
	got, err := ResolveEnv(map[string]string{"A": "${URL}", "B": "b"}, vault)
	if err != nil || got["A"] != "postgres://u:hunter2@db/x" || got["B"] != "b" {
		t.Error(got, err)
	}
	_, err = ResolveEnv(map[string]string{"A": "${MISSING}"}, vault)
	if err == nil || !strings.Contains(err.Error(), "A of the job: environment variable MISSING") || daybook.HintOf(err) == "" {
		t.Error(err)
	}
}

func TestDatabaseURL(t *testing.T) {
	for _, c := range []struct{ text, want, fault string }{
		{"sqlite:x.db", "sqlite:/etc/daybook/x.db", ""}, // beside the file, wherever the process stands
		{"sqlite:/var/x.db", "sqlite:/var/x.db", ""},
		{"${URL}", "postgres://u:hunter2@db/x", ""},
		{"${LITE}", "sqlite:/etc/daybook/x.db", ""},
		{"${REF}", "", "another reference"},
		{"${MISSING}", "", "is not set"},
		{"file:/run/pw", "", "of no known kind"},
	} {
		f := &File{Path: "/etc/daybook/daybook.yaml", Database: NewSecret(c.text)}
		got, err := f.DatabaseURL(vault)
		if got != c.want || (c.fault == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%q: %q, %v", c.text, got, err)
		}
		if err != nil && strings.Contains(err.Error()+daybook.HintOf(err), "hunter2") {
			t.Errorf("%q: the message holds the secret: %v", c.text, err)
		}
	}
	f := &File{Path: "daybook.yaml", Database: NewSecret("sqlite:x.db")}
	if got, _ := f.DatabaseURL(vault); got != "sqlite:x.db" {
		t.Error(got)
	}
}

func TestCheckDatabase(t *testing.T) {
	for text, ok := range map[string]bool{
		"postgres://db/x": true, "postgresql://me@db:5432/x?sslmode=require": true, "postgres://u:p@db/x": false,
		"postgres:///x?host=/var/run/postgresql": true, "postgres://db/x?password=p": false, "postgres://db": false,
		"postgres://u:p%zz@db/x": false, "sqlite:a b/世界.db": true, "sqlite:x/": false,
	} {
		err := CheckDatabase(text, false)
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && daybook.HintOf(err) == "" {
			t.Errorf("%q: no remedy", text)
		}
	}
	if err := CheckDatabase("postgres://u:p@db/x", true); err != nil {
		t.Error(err)
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	s := NewSecret("postgres://u:hunter2@db/x?sslpassword=hunter2")
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "db", s)
	j, _ := json.Marshal(map[string]Secret{"db": s})
	for _, text := range []string{s.String(), fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %q %s", s, s, s, s, s), string(j), log.String(),
		Mask(`dial "postgres://u:hunter2@db/x": password=hunter2`), maskLine(`env: {API_TOKEN: hunter2, "db_password": 'hunter2'}`)} {
		if strings.Contains(text, "hunter2") {
			t.Error(text)
		}
		if !strings.Contains(text, "***") {
			t.Errorf("not masked: %s", text)
		}
	}
	if got := NewSecret("file:/run/pw").String(); got != "file:/run/pw" {
		t.Error(got)
	}
	if got := maskLine(`token: "${TOKEN}", secret: "file:/x"`); got != `token: "${TOKEN}", secret: "file:/x"` {
		t.Error(got)
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "10m": 10 * time.Minute, "26h": 26 * time.Hour, "7d": 168 * time.Hour, "1h30m": 90 * time.Minute,
		"0": 0, "0s": 0, "500ms": 500 * time.Millisecond, "1d2h3m4s5ms": 26*time.Hour + 3*time.Minute + 4*time.Second + 5*time.Millisecond,
		"007s": 7 * time.Second,
	} {
		if got, err := ParseDuration(text); err != nil || time.Duration(got) != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "5", "m", "5 m", " 5m", "5m ", "-5m", "+5m", "1.5h", "1h1h", "1m1h", "5M", "5min", "1w", "5µs", "99999999999d",
		"106752d", "1e3s", "５m", "forever"} {
		_, err := ParseDuration(text)
		var e *daybook.Error
		if !errors.As(err, &e) || e.Code != daybook.CodeInvalid || e.Hint == "" {
			t.Errorf("%q: %v", text, err)
		}
	}
	for d, want := range map[time.Duration]string{0: "0s", 90 * time.Second: "1m30s", 26 * time.Hour: "26h", 168 * time.Hour: "7d",
		90 * time.Minute: "1h30m", daybook.Forever: "forever", 1500 * time.Millisecond: "1s500ms"} {
		if got := Duration(d).String(); got != want {
			t.Errorf("%d: %q, want %q", d, got, want)
		}
	}
}
