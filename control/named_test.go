package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/store/storetest"
)

// listed lists the subjects of a window, which are named.
func (b *bench) listed(j *daybook.Job, k daybook.Key, ids ...string) {
	b.t.Helper()
	p := b.claim(k)
	var list []*daybook.Run
	for _, id := range ids {
		c, err := p.Child(j, daybook.Subject{ID: id}, p.Window)
		if err != nil {
			b.t.Fatal(err)
		}
		list = append(list, c)
	}
	if _, _, err := b.s.ListChildren(b.ctx, p, list, b.now.Add(time.Minute)); err != nil {
		b.t.Fatal(err)
	}
	p.Fans = true
	n := int64(len(ids))
	storetest.Apply(b.ctx, b.t, b.s, p.List(daybook.Listed{Subjects: n, New: n}, daybook.Outcome{Result: daybook.ResultDone}, b.now))
}

// A slip in the name of a subject must not charge whom nobody listed: not by the trigger, and not by what is suggested.
func TestASubjectThatNobodyListed(t *testing.T) {
	each(t, func(b *bench) {
		b.at(day("2026-03-01"))
		renew := b.job(daybook.Job{Name: "renew", Schedule: "0 2 * * *", Window: daybook.Day, Priority: daybook.P0, Effects: daybook.Once, HasSubjects: true})
		b.job(daybook.Job{Name: "report", Schedule: "0 2 * * *", Window: daybook.Day})
		b.job(daybook.Job{Name: "fix", Window: daybook.Day})
		b.job(daybook.Job{Name: "welcome", Window: daybook.PerEvent})
		b.at(utc("2026-10-26T12:00:00"))
		b.beat(daybook.Node{})
		b.trigger(control.Request{Job: "renew"})
		b.listed(renew, "renew:2026-10-26", "ann", "bob", "zoe")

		for _, c := range []struct {
			window, subject, says, next string
		}{
			{"2026-10-26", "nobody", "renew:2026-10-26/nobody  is not in the listing of 3. Nothing was started.",
				"daybook job trigger renew --window 2026-10-26 --subject nobody --confirm=renew:2026-10-26/nobody"},
			{"2026-10-26", "bbo", "renew:2026-10-26/bbo  is not in the listing of 3. Nothing was started.", "did you mean renew:2026-10-26/bob?"},
			{"2026-10-25", "bob", "renew:2026-10-25/bob  is not listed: the subjects of its window were not listed yet. Nothing was started.",
				"daybook job trigger renew --window 2026-10-25 --subject bob --confirm=renew:2026-10-25/bob"},
		} {
			q := control.Request{Job: "renew", Window: c.window, Subject: c.subject}
			for what, ask := range map[string]func() (control.Answer, error){
				"trigger": func() (control.Answer, error) { return b.Trigger(b.ctx, ops, q) },
				"preview": func() (control.Answer, error) { return b.Preview(b.ctx, ops, q) },
				"api": func() (control.Answer, error) {
					return b.Trigger(b.ctx, control.Person{Name: "shop", Source: daybook.SourceAPI}, q)
				},
			} {
				a, err := ask()
				if err != nil || a.Outcome != daybook.Refused || a.Exit != 4 || a.HTTP != 409 || a.Run != nil || a.Line() != c.says || a.Next() != c.next {
					t.Errorf("%s: %v %d/%d %q, next %q", what, err, a.Exit, a.HTTP, a.Line(), a.Next())
				}
			}
		}
		// Whom the listing named, and whoever is wanted all the same.
		if a := b.trigger(control.Request{Job: "renew", Subject: "bob"}); a.Outcome != daybook.Joined {
			t.Errorf("listed: %s", a.Line())
		}
		if a := b.trigger(control.Request{Job: "renew", Subject: "nobody", Unlisted: true}); a.Outcome != daybook.Started {
			t.Errorf("wanted all the same: %s", a.Line())
		}
		if a := b.trigger(control.Request{Job: "renew", Subject: "nobody"}); a.Outcome != daybook.Joined {
			t.Errorf("and known from then on: %s", a.Line())
		}

		// A replay of a slip suggests nothing that would start it.
		for key, next := range map[daybook.Key]string{
			"renew:2026-10-26/bbo":     "did you mean renew:2026-10-26/bob?",
			"renew:2026-10-26/somebod": "daybook key find renew:2026-10-26",
			"renew:2026-10-25":         "daybook job trigger renew --window 2026-10-25",
		} {
			a, err := b.Replay(b.ctx, ops, []daybook.Key{key}, "")
			if err != nil || a[0].Exit != 5 || a[0].Next() != next {
				t.Errorf("replay %s: %v, next %q, want %q", key, err, a[0].Next(), next)
			}
		}
		if _, err := b.Run(b.ctx, "renew:2026-10-26/bbo"); !strings.Contains(daybook.HintText(err).String(), "did you mean renew:2026-10-26/bob?") {
			t.Errorf("show: %v, %s", err, daybook.HintText(err))
		}
		if s, err := b.Key(b.ctx, "renew:2026-10-26/bbo"); err != nil || s.Near != "renew:2026-10-26/bob" {
			t.Errorf("story: %v, %s", err, s.Near)
		}

		// A window that is done whole has no subjects; what has no schedule does what it is asked for; an event's orders it.
		err := b.refusedWith(daybook.CodeInvalid, control.Request{Job: "report", Subject: "bob"})
		if want := "job report has no subjects: report:2026-10-26 is the whole window"; err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if a := b.trigger(control.Request{Job: "fix", Window: "2026-10-26", Subject: "order 7"}); a.Outcome != daybook.Started {
			t.Errorf("one item mended: %s", a.Line())
		}
		if a := b.trigger(control.Request{Job: "welcome", Window: "u_9", Subject: "bob", Source: daybook.SourceEvent}); a.Outcome != daybook.Started || a.Key != "welcome:u_9" {
			t.Errorf("an event: %s", a.Line())
		}
	})
}
