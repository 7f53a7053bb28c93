package alert

import (
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/golden"
	"github.com/daybook-run/daybook/internal/lang"
	"github.com/daybook-run/daybook/internal/notice"
)

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

// night is the alert of a P0 job in Berlin, after the clock went forward.
func night(kind daybook.AlertKind, change ...func(*notice.Row, *Facts)) (notice.Row, Facts) {
	r := notice.Row{Alert: daybook.Alert{ID: "row", Kind: kind, Key: "renew:2026-03-29", Job: "renew", Priority: daybook.P0,
		LastError: `402 card_declined "insufficient funds"`, At: at("2026-03-29T01:00:37Z")}, Number: 91}
	f := Facts{Purpose: notice.First, Round: 1, URL: "https://ops.acme.example/daybook", Remind: at("2026-03-29T02:00:40Z"), Now: at("2026-03-29T01:00:40Z"),
		Job: &daybook.Job{Name: "renew", Owner: "ops", Runbook: "https://wiki.acme.example/renew", Timezone: "Europe/Berlin"},
		Run: &daybook.Run{Key: "renew:2026-03-29", Job: "renew", Zone: "Europe/Berlin", State: daybook.Dead, Priority: daybook.P0, Effects: daybook.Once,
			Attempts: 1, Effect: &daybook.StepRecord{Key: "renew:2026-03-29", Step: daybook.StepRun, State: daybook.EffectRefused, Generation: 1}}}
	for _, c := range change {
		c(&r, &f)
	}
	return r, f
}

func TestTexts(t *testing.T) {
	p1 := func(r *notice.Row, f *Facts) {
		r.Priority, f.Run.Priority, f.Run.Effects, f.Run.Effect, f.Run.Attempts = daybook.P1, daybook.P1, daybook.Repeatable, nil, 4
		r.LastError, f.URL, f.Remind = "exit 1: smtp 535 authentication failed", "", time.Time{}
		f.Run.Counts = map[string]int64{"mails": 112}
	}
	whole := func(r *notice.Row, f *Facts) { r.Alert.Key, f.Run = "", nil }
	state := func(s daybook.EffectState) func(*notice.Row, *Facts) {
		return func(_ *notice.Row, f *Facts) { f.Run.Effect.State = s }
	}
	purpose := func(p notice.Purpose, round int) func(*notice.Row, *Facts) {
		return func(_ *notice.Row, f *Facts) { f.Purpose, f.Round = p, round }
	}
	replayed := func(r *notice.Row, f *Facts) {
		r.ClosedAt = at("2026-03-29T07:10:00Z")
		f.Purpose, f.Now, f.Run.State, f.Run.EndedAt = notice.Recovered, at("2026-03-29T07:10:05Z"), daybook.Done, at("2026-03-29T07:10:04Z")
		f.Run.Letter = &daybook.Letter{State: daybook.LetterReplayed, ClosedBy: "ops", Note: "card changed"}
	}
	for _, c := range []struct {
		name   string
		kind   daybook.AlertKind
		change []func(*notice.Row, *Facts)
	}{
		{"dead letter, money", daybook.AlertDeadLetter, nil},
		{"dead letter, no money, no link", daybook.AlertDeadLetter, []func(*notice.Row, *Facts){p1}},
		{"unknown outcome", daybook.AlertUnknownOutcome, []func(*notice.Row, *Facts){state(daybook.EffectUnknown)}},
		{"unknown outcome, reminder", daybook.AlertUnknownOutcome, []func(*notice.Row, *Facts){state(daybook.EffectUnknown), purpose(notice.Remind, 3)}},
		{"dead letter, 24 h", daybook.AlertDeadLetter, []func(*notice.Row, *Facts){purpose(notice.StillOpen, 2),
			func(_ *notice.Row, f *Facts) { f.Now = at("2026-03-30T01:00:40Z") }}},
		{"recovered", daybook.AlertDeadLetter, []func(*notice.Row, *Facts){replayed}},
		{"late", daybook.AlertJobLate, []func(*notice.Row, *Facts){func(_ *notice.Row, f *Facts) {
			f.Run.State, f.Run.Attempts, f.Run.Effect, f.Run.NotBefore = daybook.Scheduled, 0, nil, at("2026-03-29T00:00:00Z")
			f.Run.Hold = daybook.ReasonPrevious
		}}},
		{"skipped", daybook.AlertJobLate, []func(*notice.Row, *Facts){func(r *notice.Row, f *Facts) {
			r.LastError, f.Run.State, f.Run.Attempts, f.Run.Effect = "window 2026-03-29 skipped: missed", daybook.Skipped, 0, nil
		}}},
		{"silent", JobSilent, []func(*notice.Row, *Facts){whole, func(r *notice.Row, _ *Facts) { r.LastGood = "2026-03-26" }}},
		{"silent, never good", JobSilent, []func(*notice.Row, *Facts){whole}},
		{"schedule fault", daybook.AlertScheduleFault, []func(*notice.Row, *Facts){whole, func(r *notice.Row, _ *Facts) { r.LastError = "calendar cn.csv: no such file" }}},
		{"clock leap", daybook.AlertClockLeap, []func(*notice.Row, *Facts){whole, func(r *notice.Row, f *Facts) {
			r.Job, r.LastError, f.Job = "daybook", "the wall clock leapt 8 h ahead of the boot clock", nil
		}}},
		{"ledger restored", daybook.AlertLedgerRestored, []func(*notice.Row, *Facts){whole, func(r *notice.Row, f *Facts) {
			r.Job, r.LastError, f.Job = "daybook", "this is the backup of 2026-03-29T00:30:00Z", nil
		}}},
		{"unknown since the ledger forgot", daybook.AlertUnknownOutcome, []func(*notice.Row, *Facts){state(daybook.EffectUnknown), func(r *notice.Row, f *Facts) {
			f.Run.Attempts, f.Run.Effect.Doubt, f.Run.Effect.Fence = 0, 1, 0
			r.LastError = "the ledger was put back to 2026-03-29T00:30:00Z and forgot what happened after it: whether this happened is unknown"
		}}},
		{"done twice", daybook.AlertDoneTwice, []func(*notice.Row, *Facts){state(daybook.EffectDone), func(r *notice.Row, _ *Facts) {
			r.LastError = "the far side has it under renew:2026-03-29#run and under renew:2026-03-29#run@2"
		}}},
		{"a serial key is held too long", daybook.AlertSerialStuck, []func(*notice.Row, *Facts){state(daybook.EffectBegun), func(r *notice.Row, _ *Facts) {
			r.LastError = "it has serial key subscription:sub_7 since 2026-03-29T01:00:00Z, longer than its max_runtime 20m0s"
		}}},
		{"overtaken, by way of the fallback", daybook.AlertOvertaken, []func(*notice.Row, *Facts){whole, func(r *notice.Row, f *Facts) {
			r.LastError, f.Via = "node n2 plans with revision 3 of 4", "phone"
		}}},
		{"a kind to come", "backup_failed", []func(*notice.Row, *Facts){whole, func(r *notice.Row, _ *Facts) { r.LastError = "disk full" }}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, f := night(c.kind, c.change...)
			var b strings.Builder
			for _, l := range lang.Languages {
				text := Write(lang.For(l), r, f)
				if n := lang.Chars(text.Subject); n > subjectChars {
					t.Errorf("subject of %d characters: %s", n, text.Subject)
				}
				if n := lang.Chars(text.Short); n > shortChars {
					t.Errorf("short form of %d characters: %s", n, text.Short)
				}
				b.WriteString(text.Body + "\n" + text.Short + "\n\n")
			}
			golden.Equal(t, "testdata/texts/"+strings.NewReplacer(" ", "_", ",", "").Replace(c.name)+".txt", b.String())
		})
	}
}

// Whatever the fields hold, a subject is one line, and nobody can begin a further line of the body (H62).
func TestNoFieldBreaksALine(t *testing.T) {
	evil := "x\r\nBcc: a@b.test\nDo:  rm -rf\u2028y\u0085z\x00\u202e"
	r, f := night(daybook.AlertDeadLetter)
	plain := strings.Count(Write(lang.For(lang.English), r, f).Body, "\n")
	r.LastError, r.Job, f.Job.Owner, f.Job.Runbook, f.URL, r.LastGood = evil, evil, evil, evil, "https://ops\r\nBcc: a@b.test", evil
	f.Run.Counts = map[string]int64{evil: 1}
	f.Run.Letter = &daybook.Letter{ClosedBy: evil, Note: evil, State: daybook.LetterDismissed}
	f.Via = evil
	for _, p := range []notice.Purpose{notice.First, notice.Recovered} {
		for _, key := range []daybook.Key{"renew:2026-03-29", daybook.Key(evil)} {
			r.Alert.Key, f.Purpose = key, p
			for _, l := range lang.Languages {
				text := Write(lang.For(l), r, f)
				for _, line := range append(strings.Split(text.Body, "\n"), text.Subject, text.Short, text.Details.Error, string(text.Details.Key), text.Details.URL) {
					if strings.ContainsAny(line, "\r\n\x00\u0085\u2028\u202e") || strings.HasPrefix(line, "Bcc") {
						t.Errorf("%q", line)
					}
				}
				if n := strings.Count(text.Body, "\n"); p == notice.First && n != plain+1 { // one more for the failed channel
					t.Errorf("%d lines, want %d:\n%s", n, plain+1, text.Body)
				}
			}
		}
	}
}

func TestLongFieldsAreCut(t *testing.T) {
	r, f := night(daybook.AlertDeadLetter)
	r.LastError = strings.Repeat("错误", 5000)
	r.Alert.Key = daybook.Key("renew:2026-03-29/" + strings.Repeat("a", 180))
	for _, l := range lang.Languages {
		text := Write(lang.For(l), r, f)
		if n := lang.Chars(text.Subject); n > subjectChars {
			t.Errorf("subject of %d", n)
		}
		if n := lang.Chars(text.Short); n > shortChars || !strings.Contains(text.Short, For(l).T("alert.shortly.not_done")) {
			t.Errorf("short of %d: %s", n, text.Short)
		}
		if n := lang.Chars(text.Body); n > 3000 {
			t.Errorf("body of %d", n)
		}
		if !strings.Contains(text.Body, string(r.Alert.Key)) {
			t.Error("the whole key does not stand in the body")
		}
	}
}

// For saves an import name in tests.
func For(l string) lang.Printer { return lang.For(l) }

// H66: a secret is masked wherever it could show.
func TestSecretsAreMasked(t *testing.T) {
	const secret = "s3cr3t-xyz/1"
	r, f := night(daybook.AlertDeadLetter)
	f.Secrets = []string{secret, "ab", ""}
	r.LastError = "POST https://x.example/?key=" + secret + ": " + strings.Repeat("y", 150) + secret
	f.Job.Runbook = "https://wiki.example/?token=s3cr3t-xyz%2F1"
	for _, l := range lang.Languages {
		text := Write(lang.For(l), r, f)
		for _, s := range []string{text.Body, text.Subject, text.Short, text.Details.json()} {
			if strings.Contains(s, "s3cr3t") {
				t.Errorf("shows the secret: %s", s)
			}
		}
		if !strings.Contains(text.Body, "key=***") {
			t.Errorf("no mark where it stood: %s", text.Body)
		}
	}
}

func TestMask(t *testing.T) {
	for _, c := range []struct {
		text, want string
		secrets    []string
	}{
		{"nothing", "nothing", nil},
		{"a hunter2 b", "a *** b", []string{"hunter2"}},
		{"hunter2more hunter2", "*** ***", []string{"hunter2", "hunter2more"}},
		{"ab", "ab", []string{"ab"}},
		{"line one, line two", "***, ***", []string{"line one\nline two\n"}},
		{"a%2Fb+c%26", "***", []string{"a/b c&"}},
		{"aHVudGVyMg==", "***", []string{"hunter2"}},
	} {
		if got := daybook.Mask(c.text, c.secrets); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}
