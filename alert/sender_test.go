package alert_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/alert"
	"github.com/daybook-run/daybook/internal/lang"
	"github.com/daybook-run/daybook/internal/loop"
	"github.com/daybook-run/daybook/internal/notice"
	"github.com/daybook-run/daybook/internal/pgtest"
	"github.com/daybook-run/daybook/store"
	"github.com/daybook-run/daybook/store/storetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	_ alert.Store      = (*store.Store)(nil)
	_ alert.WatchStore = (*store.Store)(nil)
	_ loop.Waiter      = (*alert.Sender)(nil)
	_ loop.Waiter      = (*alert.Watcher)(nil)
)

// phone is a channel that keeps what it is sent.
type phone struct {
	mu   sync.Mutex
	name string
	got  []alert.Message
	fail func(m alert.Message) error
}

func (p *phone) Send(ctx context.Context, m alert.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		if err := p.fail(m); err != nil {
			return err
		}
	}
	p.got = append(p.got, m)
	return nil
}

// heard returns what was heard since it was asked last: key and purpose of each.
func (p *phone) heard() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []string
	for _, m := range p.got {
		list = append(list, m.Key+" "+string(m.Purpose))
	}
	p.got = nil
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// waits is a channel that takes a message only once something has happened.
type waits chan struct{}

func (w waits) Send(ctx context.Context, _ alert.Message) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-w:
		return nil
	}
}

// desk is a sender on a ledger, with a clock moved by hand.
type desk struct {
	*testing.T
	ctx         context.Context
	s           *store.Store
	now         time.Time
	phone, mail *phone
	o           alert.Options
	sender      *alert.Sender
}

func newDesk(ctx context.Context, t *testing.T, s *store.Store) *desk {
	d := &desk{T: t, ctx: ctx, s: s, now: storetest.Birth, phone: &phone{name: "phone"}, mail: &phone{name: "mail"}}
	d.o = alert.Options{
		Channels: []alert.Named{{Name: "phone", Lang: lang.English, Channel: d.phone}, {Name: "mail", Lang: lang.Chinese, Channel: d.mail}},
		Routes:   map[daybook.Priority]alert.Route{daybook.P0: {To: []string{"phone"}, Remind: time.Hour}, daybook.P1: {To: []string{"phone"}}},
		NewID:    storetest.NewID, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Name: "acme",
	}
	d.restart()
	return d
}

// restart is a new process on the same ledger.
func (d *desk) restart() { d.sender = alert.New(d.s, d.o) }

func (d *desk) tick() {
	d.Helper()
	for {
		more, err := d.sender.Tick(d.ctx, d.now)
		if err != nil {
			d.Fatal(err)
		}
		if !more {
			return
		}
	}
}

func (d *desk) after(t time.Duration) {
	d.Helper()
	d.now = d.now.Add(t)
	d.tick()
}

func (d *desk) expect(p *phone, want string) {
	d.Helper()
	if got := p.heard(); got != want {
		d.Errorf("%s heard %q, want %q", p.name, got, want)
	}
}

// dies lets a window of a job end as a dead letter.
func (d *desk) dies(j *daybook.Job, date string, o daybook.Outcome) *daybook.Run {
	d.Helper()
	storetest.Add(d.ctx, d, d.s, j, date, d.now)
	r := storetest.Claim(d.ctx, d, d.s, 1, d.now)[0]
	e, ok := (*daybook.StepRecord)(nil), true
	if r.OneEffect() {
		e, ok = r.Begin(j.Policy(), d.now)
	}
	if !ok {
		d.Fatal("may not begin")
	}
	if err := d.s.Begin(d.ctx, r, e, d.now); err != nil {
		d.Fatal(err)
	}
	storetest.Apply(d.ctx, d, d.s, r.Next(o, j.Policy(), d.now))
	return storetest.Find(d.ctx, d, d.s, r.Key)
}

var declined = daybook.Outcome{Result: daybook.ResultPermanent, Error: "402 card_declined"}

func (d *desk) act(action string) daybook.Activity {
	return daybook.Activity{At: d.now, Actor: "ops", Action: action, Note: "because"}
}

func (d *desk) replay(r *daybook.Run) {
	d.Helper()
	if _, _, err := d.s.Trigger(d.ctx, daybook.Ask{Key: r.Key, Source: daybook.SourceReplay, Actor: "ops"}, nil, d.now); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) ack(number int64) {
	d.Helper()
	if changed, err := d.s.AckAlert(d.ctx, number, d.act("alert ack")); err != nil || !changed {
		d.Fatalf("acknowledged: %v %v", changed, err)
	}
}

// send returns a send by its key.
func (d *desk) send(number int64, key string) notice.Send {
	d.Helper()
	list, err := d.s.AlertSends(d.ctx, number)
	if err != nil {
		d.Fatal(err)
	}
	i := slices.IndexFunc(list, func(m notice.Send) bool { return m.Key == key })
	if i < 0 {
		d.Fatalf("there is no send %s in %+v", key, list)
	}
	return list[i]
}

// Every case runs on a ledger of its own on both databases.
func TestSender(t *testing.T) {
	for _, kind := range []func(testing.TB) storetest.Database{storetest.SQLite, storetest.Postgres} {
		base := kind(t)
		t.Run(base.Name, func(t *testing.T) {
			for _, c := range senderCases {
				t.Run(c.says, func(t *testing.T) { c.test(newDesk(t.Context(), t, storetest.Ledger(t, base.Fresh(t)))) })
			}
		})
	}
}

var senderCases = []struct {
	says string
	test func(d *desk)
}{
	{"P0 is repeated until it is acknowledged", func(d *desk) {
		d.dies(storetest.Job("renew", storetest.Once), "2026-03-01", declined)
		d.tick()
		d.expect(d.phone, "al_1/phone/1 first")
		d.after(59 * time.Minute)
		d.expect(d.phone, "")
		d.after(time.Minute)
		d.expect(d.phone, "al_1/phone/2 remind")
		d.restart() // a new process goes on where the one before was
		d.after(time.Hour)
		d.expect(d.phone, "al_1/phone/3 remind")
		d.ack(1)
		d.after(2 * time.Hour)
		d.expect(d.phone, "")
		d.after(24 * time.Hour) // the letter is still open
		d.expect(d.phone, "al_1/phone/4 still open")
		d.after(48 * time.Hour)
		d.expect(d.phone, "")
	}},
	{"recovery is told once and quotes the alert", func(d *desk) {
		r := d.dies(storetest.Job("renew", storetest.Once), "2026-03-01", declined)
		d.tick()
		d.expect(d.phone, "al_1/phone/1 first")
		d.now = d.now.Add(time.Minute)
		d.replay(r)
		d.tick()
		d.phone.mu.Lock()
		if len(d.phone.got) != 1 || !strings.Contains(d.phone.got[0].Body, "Alert al_1 of ") || !strings.Contains(d.phone.got[0].Body, "replayed by ops") {
			d.Errorf("recovery: %+v", d.phone.got)
		}
		d.phone.mu.Unlock()
		d.expect(d.phone, "al_1/phone/2 recovered")
		d.expect(d.mail, "")
		d.after(48 * time.Hour)
		d.expect(d.phone, "")
	}},
	{"P1 is told once and again when its letter is open for 24 hours", func(d *desk) {
		d.dies(storetest.Job("digest"), "2026-03-01", declined)
		d.tick()
		d.expect(d.phone, "al_1/phone/1 first")
		d.after(23 * time.Hour)
		d.expect(d.phone, "")
		d.after(time.Hour)
		d.expect(d.phone, "al_1/phone/2 still open")
		d.after(48 * time.Hour)
		d.expect(d.phone, "")
	}},
	{"what was over before it was told is never told", func(d *desk) {
		d.replay(d.dies(storetest.Job("renew", storetest.Once), "2026-03-01", declined))
		d.tick()
		d.after(48 * time.Hour)
		d.expect(d.phone, "")
	}},
	{"a send that nobody marked is made again under its key with its text", func(d *desk) {
		d.dies(storetest.Job("renew", storetest.Once), "2026-03-01", declined)
		ctx, kill := context.WithCancel(d.ctx)
		d.phone.fail = func(alert.Message) error { kill(); return nil } // it went out, and then the process died
		if _, err := d.sender.Tick(ctx, d.now); !errors.Is(err, context.Canceled) {
			d.Fatalf("tick: %v", err)
		}
		first := d.phone.got[0]
		d.expect(d.phone, "al_1/phone/1 first")
		d.phone.fail = nil
		d.restart()
		d.after(30 * time.Second) // its lease is not over
		d.expect(d.phone, "")
		d.after(2 * time.Minute)
		second := d.phone.got[0]
		d.expect(d.phone, "al_1/phone/1 first")
		if first.Body != second.Body || first.Data != second.Data || first.Alert != second.Alert {
			d.Errorf("the text is another one:\n%s\n%s", first.Body, second.Body)
		}
		if m := d.send(1, "al_1/phone/1"); m.State != notice.SendDone || m.Tries != 2 || m.Failures != 0 {
			d.Errorf("%+v", m)
		}
	}},
	{"two senders at once send once", func(d *desk) {
		for i := range 5 {
			d.dies(storetest.Job(fmt.Sprint("renew", i), storetest.Once), "2026-03-01", declined)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				sender := alert.New(d.s, d.o)
				for more := true; more; {
					var err error
					if more, err = sender.Tick(d.ctx, d.now); err != nil {
						d.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		d.tick()
		d.expect(d.phone, "al_1/phone/1 first, al_2/phone/1 first, al_3/phone/1 first, al_4/phone/1 first, al_5/phone/1 first")
	}},
	{"a failed send climbs the ladder and the fallback is told at once for P0", func(d *desk) {
		d.o.Fallback = []string{"mail"}
		d.o.Secrets = func() []string { return []string{"t0ken-9"} }
		d.restart()
		d.dies(storetest.Job("renew", storetest.Once), "2026-03-01", declined)
		d.phone.fail = func(alert.Message) error { return errors.New("https://push.example/t0ken-9: no\nroute") }
		d.tick()
		d.tick()
		if len(d.mail.got) != 1 || !strings.Contains(d.mail.got[0].Body, "因渠道 phone 失败") {
			d.Errorf("fallback: %+v", d.mail.got)
		}
		d.expect(d.mail, "al_1/mail/1 first")
		m := d.send(1, "al_1/phone/1")
		if m.State != notice.SendDue || m.Failures != 1 || !m.Due.Equal(d.now.Add(time.Minute)) || m.Error != "https://push.example/***: no route" {
			d.Errorf("%+v", m)
		}
		d.after(time.Minute)
		d.after(5 * time.Minute)
		if m = d.send(1, "al_1/phone/1"); m.Failures != 3 || !m.Due.Equal(d.now.Add(25*time.Minute)) {
			d.Errorf("%+v", m)
		}
		d.after(25 * time.Minute)
		if m = d.send(1, "al_1/phone/1"); m.State != notice.SendFailed || m.Failures != 4 {
			d.Errorf("%+v", m)
		}
		d.after(time.Minute)
		d.expect(d.mail, "") // it has the text already
		d.phone.fail = nil
		d.after(28 * time.Minute) // the reminder
		d.expect(d.phone, "al_1/phone/2 remind")
	}},
	{"for P1 the fallback is told when a send is given up", func(d *desk) {
		d.o.Fallback = []string{"mail"}
		d.restart()
		d.phone.fail = func(m alert.Message) error { return errors.New("no route") }
		d.dies(storetest.Job("digest"), "2026-03-01", declined)
		for _, wait := range []time.Duration{0, time.Minute, 5 * time.Minute} {
			d.after(wait)
			d.tick()
			d.expect(d.mail, "")
		}
		d.after(25 * time.Minute)
		d.tick()
		d.expect(d.mail, "al_1/mail/1 first")
	}},
	{"a permanent failure is not repeated", func(d *desk) {
		d.o.Fallback = []string{"mail"}
		d.restart()
		d.phone.fail = func(alert.Message) error { return daybook.Permanent(errors.New("410 Gone")) }
		d.dies(storetest.Job("digest"), "2026-03-01", declined)
		d.tick()
		d.tick()
		if m := d.send(1, "al_1/phone/1"); m.State != notice.SendFailed || m.Failures != 1 || m.EndedAt.IsZero() {
			d.Errorf("%+v", m)
		}
		d.expect(d.mail, "al_1/mail/1 first")
		d.after(time.Hour)
		d.expect(d.mail, "")
		// The end goes to those who have it.
		d.replay(storetest.Find(d.ctx, d, d.s, "digest:2026-03-01"))
		d.after(time.Second)
		d.expect(d.mail, "al_1/mail/2 recovered")
	}},
	{"the fallback that fails has no further one", func(d *desk) {
		d.o.Fallback = []string{"mail", "phone"}
		d.restart()
		for _, p := range []*phone{d.phone, d.mail} {
			p.fail = func(alert.Message) error { return daybook.Permanent(errors.New("gone")) }
		}
		d.dies(storetest.Job("renew", storetest.Once), "2026-03-01", declined)
		for range 5 {
			d.tick()
		}
		list, err := d.s.AlertSends(d.ctx, 1)
		if err != nil || len(list) != 2 {
			d.Errorf("%+v %v", list, err)
		}
	}},
	{"a mute delays and hides nothing", func(d *desk) {
		j := storetest.Job("renew", storetest.Once)
		mute := func(until time.Time) {
			d.Helper()
			if err := d.s.MuteAlerts(d.ctx, notice.Mute{Job: "renew", Since: d.now, Until: until, By: "ops", Note: "maintenance"}, d.act("alert mute")); err != nil {
				d.Fatal(err)
			}
		}
		storetest.Add(d.ctx, d, d.s, j, "2026-02-28", d.now) // makes the job known
		storetest.Claim(d.ctx, d, d.s, 1, d.now)
		mute(d.now.Add(2 * time.Hour))
		r := d.dies(storetest.Job("renew", storetest.Once, func(j *daybook.Job) { j.Overlap = daybook.OverlapAllow }), "2026-03-01", declined)
		d.tick()
		d.expect(d.phone, "")
		open, err := d.s.AlertRows(d.ctx, true, 0)
		if err != nil || len(open) != 1 {
			d.Errorf("shown: %+v %v", open, err)
		}
		d.after(119 * time.Minute)
		d.expect(d.phone, "")
		d.after(time.Minute)
		d.expect(d.phone, "al_1/phone/1 first")
		mute(d.now.Add(3 * time.Hour))
		d.after(time.Hour)
		d.expect(d.phone, "") // no reminder
		d.replay(r)
		d.after(time.Minute)
		d.expect(d.phone, "") // nor the end
		mute(d.now)
		d.after(time.Minute)
		d.expect(d.phone, "al_1/phone/2 recovered")
	}},
	{"without channels alerts are numbered and told once there are some", func(d *desk) {
		routes := d.o.Routes
		d.o.Routes = nil
		d.restart()
		d.dies(storetest.Job("renew", storetest.Once), "2026-03-01", declined)
		d.tick()
		d.o.Routes = routes
		d.restart()
		d.after(time.Hour)
		d.expect(d.phone, "al_1/phone/1 first")
	}},
	{"a channel that is gone fails for good", func(d *desk) {
		d.o.Routes[daybook.P1] = alert.Route{To: []string{"pager"}}
		d.o.Fallback = []string{"phone"}
		d.restart()
		d.dies(storetest.Job("digest"), "2026-03-01", declined)
		d.tick()
		d.tick()
		d.expect(d.phone, "al_1/phone/1 first")
		if m := d.send(1, "al_1/pager/1"); m.State != notice.SendFailed {
			d.Errorf("%+v", m)
		}
	}},
	{"a channel that panics is a failure of its own", func(d *desk) {
		d.o.Routes[daybook.P1] = alert.Route{To: []string{"mail", "phone"}}
		d.restart()
		d.mail.fail = func(alert.Message) error { panic("nil map") }
		d.dies(storetest.Job("digest"), "2026-03-01", declined)
		d.tick()
		d.expect(d.phone, "al_1/phone/1 first")
		if m := d.send(1, "al_1/mail/1"); m.State != notice.SendDue || m.Error != "panic: nil map" {
			d.Errorf("%+v", m)
		}
	}},
	{"a send that kills its makers is given up", func(d *desk) {
		d.dies(storetest.Job("digest"), "2026-03-01", declined)
		for range 12 {
			ctx, kill := context.WithCancel(d.ctx)
			d.phone.fail = func(alert.Message) error { kill(); return errors.New("killed") }
			_, _ = d.sender.Tick(ctx, d.now)
			kill()
			d.now = d.now.Add(2 * time.Minute)
		}
		if m := d.send(1, "al_1/phone/1"); m.State != notice.SendFailed || !strings.Contains(m.Error, "10 tries ended without a word") {
			d.Errorf("%+v", m)
		}
	}},
	{"an alert without a key, and one whose job is gone, are told all the same, and so is their end", func(d *desk) {
		if _, err := d.s.Hold(d.ctx, daybook.Hold{Name: daybook.HoldClock, Since: d.now, Detail: "the wall clock leapt 8 h ahead"}); err != nil {
			d.Fatal(err)
		}
		if err := d.s.Alert(d.ctx, daybook.NewAlert(daybook.AlertJobLate, "gone:2026-02-01", "gone", daybook.P1, "x", "", d.now)); err != nil {
			d.Fatal(err)
		}
		d.tick()
		d.expect(d.phone, "al_1/phone/1 first, al_2/phone/1 first")
		if _, err := d.s.EndHold(d.ctx, daybook.HoldClock, d.act("freeze end")); err != nil {
			d.Fatal(err)
		}
		d.after(time.Minute)
		d.expect(d.phone, "al_1/phone/2 recovered")
	}},
	{"what has no end of its own is repeated until it is acknowledged, and then over without a word", func(d *desk) {
		if err := d.s.Alert(d.ctx, daybook.NewAlert(daybook.AlertDoneTwice, "renew:2026-03-01", "renew", daybook.P0, "two wire keys", "", d.now)); err != nil {
			d.Fatal(err)
		}
		d.tick()
		d.after(time.Hour)
		d.expect(d.phone, "al_1/phone/1 first, al_1/phone/2 remind")
		d.ack(1)
		d.after(48 * time.Hour)
		d.expect(d.phone, "")
		if r, err := d.s.AlertRow(d.ctx, 1); err != nil || r.ClosedAt.IsZero() {
			d.Errorf("%+v %v", r, err)
		}
	}},
	{"one channel that hangs does not keep the others from being told", func(d *desk) {
		d.o.Routes[daybook.P1] = alert.Route{To: []string{"mail", "phone"}}
		told := make(waits)
		d.phone.fail = func(alert.Message) error { close(told); return nil }
		d.o.Channels[1].Channel = told
		d.restart()
		d.dies(storetest.Job("digest"), "2026-03-01", declined)
		d.tick() // ends only because the phone is told while the mail waits for it
		d.expect(d.phone, "al_1/phone/1 first")
	}},
	{"real channels", func(d *desk) {
		dir := d.TempDir()
		bodies := make(chan string, 10)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			bodies <- r.Header.Get("webhook-id") + " " + string(b)
		}))
		d.Cleanup(srv.Close)
		d.o.Channels = nil
		for _, s := range []alert.Settings{
			{Name: "log", Type: "file", Path: filepath.Join(dir, "alerts.log")},
			{Name: "sms", Type: "exec", Lang: lang.Chinese, Run: []string{"/bin/sh", "-c", `cat >> "$TO"`}, Env: map[string]string{"TO": filepath.Join(dir, "sms")}},
			{Name: "hook", Type: "webhook", URL: srv.URL, Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
		} {
			c, err := alert.NewChannel(s)
			if err != nil {
				d.Fatal(err)
			}
			d.o.Channels = append(d.o.Channels, c)
		}
		d.o.Routes[daybook.P0] = alert.Route{To: []string{"log", "sms", "hook"}}
		if err := d.o.Check(); daybook.CodeOf(err) != daybook.CodeInvalid { // P1 still names phone
			d.Errorf("check: %v", err)
		}
		d.restart()
		d.dies(storetest.Job("renew", storetest.Once), "2026-03-01", declined)
		d.tick()
		for name, want := range map[string]string{"alerts.log": "al_1/log/1\n[P0] renew:2026-03-01 dead letter: 402 card_declined\n", "sms": "[P0] renew:2026-03-01 进入死信：402 card_declined\n"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !strings.Contains(string(b), want) {
				d.Errorf("%s: %v\n%s", name, err, b)
			}
		}
		if body := <-bodies; !strings.Contains(body, `"send":"al_1/hook/1"`) || !strings.Contains(body, `"owner":"ops"`) {
			d.Errorf("hook: %s", body)
		}
	}},
}

func TestTestOfAChannel(t *testing.T) {
	d := newDesk(t.Context(), t, storetest.Ledger(t, storetest.SQLite(t)))
	if err := d.sender.Test(d.ctx, "mail", d.now); err != nil {
		t.Fatal(err)
	}
	if len(d.mail.got) != 1 || !strings.Contains(d.mail.got[0].Body, "能读到它，说明 acme 的告警能送达这里。") {
		t.Errorf("%+v", d.mail.got)
	}
	d.phone.fail = func(alert.Message) error { return errors.New("no route") }
	if err := d.sender.Test(d.ctx, "phone", d.now); err == nil || err.Error() != "no route" {
		t.Errorf("%v", err)
	}
	err := d.sender.Test(d.ctx, "phon", d.now)
	if daybook.CodeOf(err) != daybook.CodeNotFound || daybook.HintOf(err) != "did you mean phone?" {
		t.Errorf("%v: %s", err, daybook.HintOf(err))
	}
}

func TestWaitEndsWithTheNextSend(t *testing.T) {
	d := newDesk(t.Context(), t, storetest.Ledger(t, storetest.SQLite(t)))
	d.tick()
	idle := d.sender.Wait(d.now)
	d.dies(storetest.Job("digest"), "2026-03-01", declined)
	d.phone.fail = func(alert.Message) error { return errors.New("no route") }
	d.tick()
	d.now = d.now.Add(58 * time.Second)
	if got := d.sender.Wait(d.now); got != 2*time.Second || idle <= got {
		t.Errorf("waits %s, idle %s", got, idle)
	}
}
