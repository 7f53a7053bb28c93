package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/internal/loop"
	"github.com/daybook-run/daybook/internal/outhttp"
)

// remote is a serve that is asked by HTTP.
type remote struct {
	base, token string
	client      *outhttp.Client
}

// callTimeout bounds one call of a server.
const callTimeout = 15 * time.Second

// serverBase checks the address of a server.
func serverBase(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return "", daybook.Invalid("--server %q is not the address of a server", daybook.Clip(server, 80)).WithHint("such as http://127.0.0.1:7070")
	}
	return strings.TrimRight(server, "/"), nil
}

// insideAttempt reports whether this program was started by an attempt with steps: the server in its environment is then where
// that marks its steps, and no place to ask for keys.
func (a *app) insideAttempt() bool {
	token, _ := a.LookupEnv("DAYBOOK_TOKEN")
	return token != ""
}

// remoteOf returns the server of a call: --server with --token-file, or what the environment names; nil when neither does.
func (a *app) remoteOf(server, tokenFile string) (*remote, error) {
	if server == "" && !a.insideAttempt() {
		server, _ = a.LookupEnv("DAYBOOK_SERVER")
	}
	if server == "" {
		return nil, nil
	}
	base, err := serverBase(server)
	if err != nil {
		return nil, err
	}
	if tokenFile == "" {
		tokenFile, _ = a.LookupEnv("DAYBOOK_TOKEN_FILE")
	}
	if tokenFile == "" {
		return nil, daybook.Invalid("--server needs --token-file").
			WithHint("daybook token create --role act --name NAME > FILE, on the machine of the ledger")
	}
	text, err := a.ReadFile(tokenFile)
	if err != nil {
		return nil, daybook.Invalid("the token cannot be read").Because(err).WithHint("--token-file names a file with the token alone")
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return nil, daybook.Invalid("%s holds no token, or more than one", tokenFile).WithHint("--token-file names a file with the token alone")
	}
	return &remote{base: base, token: token, client: outhttp.New(outhttp.Options{Timeout: callTimeout})}, nil
}

// refusal is a problem that the server told of.
type refusal struct {
	status int
	told   *daybook.Error
	Key    daybook.Key      `json:"key"`
	Run    *control.RunJSON `json:"run"`
	Detail string           `json:"detail"`
	Next   string           `json:"next"`
	Code   daybook.Code     `json:"code"`
}

func (f *refusal) Error() string { return f.told.Error() }
func (f *refusal) Unwrap() error { return f.told }

// post makes one call with an Idempotency-Key of its own, so that it may be made again, until it is heard or patience ends.
// The token of an attempt speaks for it; without one, that of the file does. Errors: *refusal; CodeUnavailable.
func (r *remote) post(ctx context.Context, patience time.Duration, path, attempt string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	key := uuid.NewString()
	until := time.Now().Add(patience)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := r.call(ctx, path, attempt, key, text, into)
		if err == nil || daybook.CodeOf(err) != daybook.CodeUnavailable || !time.Now().Add(pause).Before(until) || !loop.Sleep(ctx, pause) {
			return err
		}
	}
}

func (r *remote) call(ctx context.Context, path, attempt, key string, body []byte, into any) error {
	header := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"daybook"}, "Idempotency-Key": {key}}
	if attempt != "" {
		header.Set("Daybook-Token", attempt)
	} else {
		header.Set("Authorization", "Bearer "+r.token)
	}
	ans, err := r.client.Do(ctx, outhttp.Request{Method: http.MethodPost, URL: r.base + path, Header: header, Body: body})
	if err != nil || ans.Truncated {
		return daybook.New(daybook.CodeUnavailable, "the server %s cannot be reached", r.base).Because(err).
			WithHint("is its serve running, with --listen, and is the address right?")
	}
	if ans.Status < 300 {
		if err := json.Unmarshal(ans.Body, into); err != nil {
			return daybook.Invalid("%s does not answer as a daybook does", r.base).Because(err).WithHint("--server is the address that serve --listen was given")
		}
		return nil
	}
	f := &refusal{status: ans.Status}
	ours := json.Unmarshal(ans.Body, f) == nil && f.Detail != ""
	switch {
	case ans.Status >= 500, ans.Status == http.StatusConflict && f.Code == "": // the same call is under way there
		return daybook.New(daybook.CodeUnavailable, "the server %s answers %d", r.base, ans.Status).WithHint("its log tells why")
	case !ours:
		return daybook.Invalid("%s does not answer as a daybook does: %s", r.base, ans.StatusLine()).WithHint("--server is the address that serve --listen was given")
	case f.Code == "":
		f.Code = daybook.CodeInvalid
	}
	f.told = &daybook.Error{Code: f.Code, Message: f.Detail, Hint: f.Next}
	return f
}

// refused returns what the server told of, if it is the reason of an error.
func refused(err error) (*refusal, bool) { return errors.AsType[*refusal](err) }
