package fanout_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/fanout"
)

var window = daybook.Window{Label: "2026-03-29", Date: "2026-03-29", Start: time.Date(2026, 3, 28, 23, 0, 0, 0, time.UTC), End: time.Date(2026, 3, 29, 22, 0, 0, 0, time.UTC)}

func list(t *testing.T, url string) (subjects []daybook.Subject, err error) {
	t.Helper()
	for s, e := range (fanout.Source{URL: url}).List(t.Context(), window) {
		if e != nil {
			err = e
			continue
		}
		subjects = append(subjects, s)
	}
	return subjects, err
}

// TestAnAddressListsSubjects: JSON lines or an array, read as they come.
func TestAnAddressListsSubjects(t *testing.T) {
	for _, c := range []struct {
		body string
		want string // subjects, with zone and payload
		err  string
	}{
		{`{"subject":"a","zone":"Asia/Tokyo","cents":1500}` + "\n" + `{"subject":7}` + "\n\n", "a@Asia/Tokyo{map[cents:1500]} 7", ""},
		{`[{"subject":"a"}, "b", 3]`, "a b 3", ""},
		{` [ ] `, "", ""},
		{``, "", ""},
		{`{"subject":12345678901234567890}`, "12345678901234567890", ""},
		{`{"subject":null} {"subject":{}} true`, "- - -", ""}, // told as what is no subject
		{`{"id":"a"}`, "", "no name subject"},
		{`[{"subject":"a"},`, "a", "EOF"},
		{`[{"subject":"a"}`, "a", "EOF"},
		{`{"subject":"a"}` + "\n" + `{"subj`, "a", "EOF"},
		{`<html>`, "", "invalid character"},
		{`{"subject":"a"}` + "\n" + `{"subject":"` + strings.Repeat("x", 3<<20) + `"}`, "a", "more than 1048576 bytes"},
	} {
		far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.String() != "/due?on=2026-03-29&from=2026-03-28T23%3A00%3A00Z" || r.Method != http.MethodGet {
				t.Errorf("asked %s %s", r.Method, r.URL)
			}
			_, _ = w.Write([]byte(c.body))
		}))
		got, err := list(t, far.URL+"/due?on={date}&from={window_start}")
		far.Close()
		var words []string
		for _, s := range got {
			word := s.ID
			if word == "" {
				word = "-"
			}
			if s.Zone != "" {
				word += "@" + s.Zone
			}
			if s.Payload != nil {
				word += fmt.Sprintf("{%v}", s.Payload)
			}
			words = append(words, word)
		}
		if text := strings.Join(words, " "); text != c.want || (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%.60s: got %q %v, want %q %s", c.body, text, err, c.want, c.err)
		}
	}
}

// TestAListingThatFails: what is cut off, refused or not there is an error, never a shorter list.
func TestAListingThatFails(t *testing.T) {
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"subject":"a"}` + "\n"))
		w.(http.Flusher).Flush()
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = c.Close()
		}
	}))
	defer cut.Close()
	if got, err := list(t, cut.URL); err == nil || len(got) != 1 {
		t.Errorf("cut off: %v %v", got, err)
	}
	for status, want := range map[int]daybook.Result{404: daybook.ResultPermanent, 503: daybook.ResultUnclear, 302: daybook.ResultUnclear} {
		far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		got, err := list(t, far.URL+"/due?token=s3cret")
		far.Close()
		if out := daybook.OutcomeOf(err); len(got) > 0 || out.Result != want || !strings.HasPrefix(out.Error, far.URL+"/due: ") || strings.Contains(out.Error, "s3cret") {
			t.Errorf("%d: %v %s %v", status, got, out.Result, err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if got, err := list(t, "http://"+l.Addr().String()); err == nil || len(got) > 0 {
		t.Errorf("nobody there: %v %v", got, err)
	}
}
