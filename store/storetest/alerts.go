package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/notice"
)

// alarm writes an alert about a job and returns it as the sender meets it.
func (k *kit) alarm(kind daybook.AlertKind, key daybook.Key, job string) notice.Row {
	k.Helper()
	k.ok(k.s.Alert(k.ctx, daybook.NewAlert(kind, key, job, daybook.P1, "it broke", "", k.now)))
	rows, err := k.s.AlertRows(k.ctx, true, 0)
	k.ok(err)
	i := slices.IndexFunc(rows, func(r notice.Row) bool { return r.Kind == kind && r.Job == job && r.Alert.Key == key })
	if i < 0 {
		k.Fatalf("no open alert %s of %s", kind, job)
	}
	return rows[i]
}

// due returns the ids of what is to be looked at.
func (k *kit) due() []string {
	k.Helper()
	rows, err := k.s.AlertsDue(k.ctx, k.now, 0)
	k.ok(err)
	ids := []string{}
	for _, r := range rows {
		ids = append(ids, r.ID())
	}
	return ids
}

// tell writes a telling of r with one send for each channel.
func (k *kit) tell(r notice.Row, next time.Time, channels ...string) bool {
	k.Helper()
	return k.telling(notice.Telling{Row: r, Next: next, At: k.now}, notice.First, channels...)
}

func (k *kit) telling(p notice.Telling, purpose notice.Purpose, channels ...string) bool {
	k.Helper()
	for _, c := range channels {
		p.Sends = append(p.Sends, notice.Send{Key: notice.SendKey(p.Row.Number, c, p.Row.Round+1), Alert: p.Row.Alert.ID, Channel: c, Purpose: purpose,
			Lang: "en", Subject: "it broke", Body: "it broke\x00 badly", Short: "broke", Data: `{"a":1}`, Due: k.now, MadeAt: k.now})
	}
	written, err := k.s.TellAlert(k.ctx, p)
	k.ok(err)
	return written
}

// sends claims sends for a minute.
func (k *kit) sends(claim string) []notice.Send {
	k.Helper()
	list, err := k.s.ClaimSends(k.ctx, notice.Claim{ID: claim, Lease: k.now.Add(time.Minute), Limit: 10}, k.now)
	k.ok(err)
	return list
}

func (k *kit) mark(m notice.Send, state notice.SendState, instead ...notice.Send) bool {
	k.Helper()
	m.State, m.EndedAt = state, k.now
	written, err := k.s.MarkSend(k.ctx, m, instead)
	k.ok(err)
	return written
}

// row reads an alert.
func (k *kit) row(number int64) notice.Row {
	k.Helper()
	r, err := k.s.AlertRow(k.ctx, number)
	k.ok(err)
	return r
}

// states counts the sends of an alert by state.
func (k *kit) sendStates(number int64) string {
	k.Helper()
	list, err := k.s.AlertSends(k.ctx, number)
	k.ok(err)
	text := ""
	for _, m := range list {
		text += fmt.Sprintf("%s %s. ", m.Key, m.State)
	}
	return text
}

var alertCases = []example{
	{"alerts are numbered in the order in which they came, without gaps, and the numbers stay", func(k *kit) {
		for i := range 3 {
			k.now = k.now.Add(time.Second)
			k.ok(k.s.Alert(k.ctx, daybook.NewAlert(daybook.AlertJobLate, "", fmt.Sprint("job", 3-i), daybook.P1, "x", "", k.now)))
		}
		equal(k, "due", fmt.Sprint(k.due()), "[al_1 al_2 al_3]")
		equal(k, "first", k.row(1).Job, "job3")
		equal(k, "fourth", k.alarm(daybook.AlertClockLeap, "", "daybook").Number, 4)
		_, err := k.s.AlertRow(k.ctx, 5)
		k.code(err, daybook.CodeNotFound)
		_, err = k.s.AlertRow(k.ctx, 0)
		k.code(err, daybook.CodeNotFound)
	}},
	{"eight that number at once give every alert one number", func(k *kit) {
		for i := range 20 {
			k.ok(k.s.Alert(k.ctx, daybook.NewAlert(daybook.AlertJobLate, "", fmt.Sprint("job", i), daybook.P1, "x", "", k.now)))
		}
		together(8, func(int) bool {
			_, err := k.s.AlertsDue(k.ctx, k.now, 0)
			if err != nil {
				k.Error(err)
			}
			return true
		})
		equal(k, "numbers", k.number("SELECT count(DISTINCT number) FROM daybook_alerts WHERE number BETWEEN 1 AND 20"), 20)
		equal(k, "last", k.number("SELECT alerts FROM daybook_ledger"), 20)
	}},
	{"of eight that tell one alert one is first, and the others write nothing", func(k *kit) {
		r := k.alarm(daybook.AlertJobLate, "a:1", "a")
		first := together(8, func(int) bool {
			written, err := k.s.TellAlert(k.ctx, notice.Telling{Row: r, At: k.now, Next: k.now.Add(time.Hour),
				Sends: []notice.Send{{Key: "al_1/phone/1", Alert: r.Alert.ID, Channel: "phone", Purpose: notice.First, Due: k.now, MadeAt: k.now}}})
			if err != nil {
				k.Error(err)
			}
			return written
		})
		equal(k, "told", first, 1)
		equal(k, "sends", k.number("SELECT count(*) FROM daybook_sends"), 1)
	}},
	{"what was told comes again at its next look, and never when there is none", func(k *kit) {
		r := k.alarm(daybook.AlertJobLate, "a:1", "a")
		equal(k, "new", r.New, true)
		equal(k, "written", k.tell(r, k.now.Add(time.Hour), "phone"), true)
		equal(k, "due", len(k.due()), 0)
		k.now = k.now.Add(time.Hour)
		equal(k, "due", fmt.Sprint(k.due()), "[al_1]")
		r = k.row(1)
		equal(k, "round", r.Round, 1)
		equal(k, "told", r.ToldAt, k.now.Add(-time.Hour))
		equal(k, "next", r.Next, k.now)
		equal(k, "written", k.tell(r, time.Time{}), true)
		k.now = k.now.AddDate(1, 0, 0)
		equal(k, "due", len(k.due()), 0)
		equal(k, "written, from never", k.tell(k.row(1), k.now, "phone"), true)
	}},
	{"a telling is refused once the alert was acknowledged or has ended", func(k *kit) {
		r := k.alarm(daybook.AlertJobLate, "a:1", "a")
		changed, err := k.s.AckAlert(k.ctx, 1, k.act("alert ack"))
		k.ok(err)
		equal(k, "acknowledged", changed, true)
		equal(k, "written", k.tell(r, k.now, "phone"), false)
		r = k.row(1)
		equal(k, "by", r.AckedBy, "ops")
		equal(k, "why", r.AckNote, "because")
		changed, err = k.s.RecoverAlert(k.ctx, r.Alert.ID, k.now)
		k.ok(err)
		equal(k, "ended", changed, true)
		equal(k, "written", k.tell(r, k.now, "phone"), false)
	}},
	{"a send is claimed by one, and again once the lease is over, under the same key", func(k *kit) {
		k.tell(k.alarm(daybook.AlertJobLate, "a:1", "a"), time.Time{}, "mail", "phone")
		a := k.sends("one")
		equal(k, "claimed", len(a), 2)
		equal(k, "text", a[0].Body, "it broke\uFFFD badly")
		equal(k, "data", a[0].Data, `{"a":1}`)
		equal(k, "beside", len(k.sends("two")), 0)
		k.now = k.now.Add(time.Minute)
		b := k.sends("two")
		equal(k, "again", len(b), 2)
		equal(k, "key", b[0].Key, a[0].Key)
		equal(k, "tries", b[0].Tries, 2)
		equal(k, "the first one's result", k.mark(a[0], notice.SendDone), false)
		equal(k, "the second one's", k.mark(b[0], notice.SendDone), true)
		equal(k, "twice", k.mark(b[0], notice.SendFailed), false)
	}},
	{"sixteen claimers take every send once", func(k *kit) {
		for i := range 10 {
			k.tell(k.alarm(daybook.AlertJobLate, "", fmt.Sprint("job", i)), time.Time{}, "phone", "mail")
		}
		taken := make([]int, 16)
		together(16, func(i int) bool {
			list, err := k.s.ClaimSends(k.ctx, notice.Claim{ID: fmt.Sprint("c", i), Lease: k.now.Add(time.Minute), Limit: 3}, k.now)
			if err != nil {
				k.Error(err)
			}
			taken[i] = len(list)
			return true
		})
		sum := 0
		for _, n := range taken {
			sum += n
		}
		sum += len(k.sends("rest")) + len(k.sends("rest"))
		equal(k, "taken", sum, 20)
		equal(k, "tries", k.number("SELECT sum(tries) FROM daybook_sends"), 20)
	}},
	{"a failed send comes back when it says, with what stands in for it", func(k *kit) {
		k.tell(k.alarm(daybook.AlertJobLate, "a:1", "a"), time.Time{}, "phone")
		m := k.sends("one")[0]
		m.Failures, m.Error, m.Due = 1, "refused", k.now.Add(time.Minute)
		stand := m
		stand.Key, stand.Channel, stand.Via, stand.Due = "al_1/mail/1", "mail", "phone", k.now
		equal(k, "marked", k.mark(m, notice.SendDue, stand, stand), true)
		next, err := k.s.NextSend(k.ctx)
		k.ok(err)
		equal(k, "next", next, k.now)
		list := k.sends("two")
		equal(k, "now", len(list), 1)
		equal(k, "channel", list[0].Channel, "mail")
		equal(k, "instead of", list[0].Via, "phone")
		k.now = k.now.Add(time.Minute)
		list = k.sends("three")
		equal(k, "later", len(list), 2) // and the other's lease is over
		equal(k, "failures", list[slices.IndexFunc(list, func(m notice.Send) bool { return m.Channel == "phone" })].Failures, 1)
	}},
	{"what is over is looked at once more: for the channels that have it", func(k *kit) {
		r := k.alarm(daybook.AlertJobLate, "a:1", "a")
		k.tell(r, time.Time{}, "mail", "phone", "slow")
		for _, m := range k.sends("one") {
			switch m.Channel {
			case "phone":
				k.mark(m, notice.SendDone)
			case "mail":
				m.Due = k.now.Add(time.Minute)
				k.mark(m, notice.SendDue)
			}
		}
		_, err := k.s.RecoverAlert(k.ctx, r.Alert.ID, k.now)
		k.ok(err)
		equal(k, "due", fmt.Sprint(k.due()), "[al_1]")
		r = k.row(1)
		equal(k, "reached", fmt.Sprint(r.Reached), "[phone slow]")
		k.now = k.now.Add(time.Second)
		k.telling(notice.Telling{Row: r, At: k.now, Finished: true}, notice.Recovered, "phone")
		equal(k, "due", len(k.due()), 0)
		equal(k, "sends", k.sendStates(1), "al_1/mail/1 dropped. al_1/phone/1 sent. al_1/slow/1 due. al_1/phone/2 due. ")
		k.now = k.now.Add(time.Minute)
		list := k.sends("two")
		equal(k, "claimed", len(list), 1)
		equal(k, "purpose", list[0].Purpose, notice.Recovered)
		equal(k, "sends", k.sendStates(1), "al_1/mail/1 dropped. al_1/phone/1 sent. al_1/slow/1 dropped. al_1/phone/2 due. ")
	}},
	{"an acknowledgement drops what is still to be sent, once, and is written down", func(k *kit) {
		k.tell(k.alarm(daybook.AlertJobLate, "a:1", "a"), k.now.Add(time.Hour), "mail", "phone")
		m := k.sends("one")[0]
		k.mark(m, notice.SendDue)
		for _, want := range []bool{true, false} {
			k.now = k.now.Add(time.Second)
			changed, err := k.s.AckAlert(k.ctx, 1, k.act("alert ack"))
			k.ok(err)
			equal(k, "changed", changed, want)
		}
		k.now = k.now.Add(time.Hour)
		equal(k, "claimed", len(k.sends("two")), 0)
		equal(k, "open", k.row(1).ClosedAt.IsZero(), true)
		equal(k, "activities", k.number("SELECT count(*) FROM daybook_activity WHERE action = 'alert ack' AND key = 'a:1'"), 1)
		_, err := k.s.AckAlert(k.ctx, 7, k.act("alert ack"))
		k.code(err, daybook.CodeNotFound)
	}},
	{"what has no end of its own ends with its acknowledgement", func(k *kit) {
		skipped := k.run(Job("a"), "2026-03-01")
		k.set("UPDATE daybook_runs SET state = 'skipped'")
		for i, r := range []notice.Row{k.alarm(daybook.AlertDoneTwice, "a:2026-03-01", "a"), k.alarm(daybook.AlertOvertaken, "", "a"),
			k.alarm(daybook.AlertJobLate, skipped.Key, "a"), k.alarm(daybook.AlertJobLate, "a:2026-03-02", "a"), k.alarm(daybook.AlertScheduleFault, "", "a")} {
			_, err := k.s.AckAlert(k.ctx, r.Number, k.act("alert ack"))
			k.ok(err)
			equal(k, string(r.Kind)+" ended", !k.row(r.Number).ClosedAt.IsZero(), i < 3)
		}
		equal(k, "due", len(k.due()), 2)
	}},
	{"an alert of a muted job carries the end of the mute, which can be moved", func(k *kit) {
		r := k.alarm(daybook.AlertJobLate, "a:1", "a")
		until := k.now.Add(2 * time.Hour)
		k.ok(k.s.MuteAlerts(k.ctx, notice.Mute{Job: "a", Since: k.now, Until: until, By: "ops", Note: "moving house"}, k.act("alert mute")))
		r = k.row(r.Number)
		equal(k, "muted", r.MutedUntil, until)
		equal(k, "written", k.tell(r, until), true)
		_, err := k.s.RecoverAlert(k.ctx, k.alarm(daybook.AlertJobLate, "a:2", "a").Alert.ID, k.now)
		k.ok(err)
		equal(k, "due: new, though over", fmt.Sprint(k.due()), "[al_2]")
		k.tell(k.row(2), until)
		equal(k, "due", len(k.due()), 0)
		k.ok(k.s.MuteAlerts(k.ctx, notice.Mute{Job: "a", Since: k.now, Until: k.now, By: "ops", Note: "back"}, k.act("alert mute")))
		equal(k, "due", fmt.Sprint(k.due()), "[al_1 al_2]")
		mutes, err := k.s.Mutes(k.ctx, k.now)
		k.ok(err)
		equal(k, "mutes", len(mutes), 0)
		mutes, err = k.s.Mutes(k.ctx, k.now.Add(-time.Second))
		k.ok(err)
		equal(k, "why", mutes[0].Note, "back")
		equal(k, "activities", k.number("SELECT count(*) FROM daybook_activity WHERE action = 'alert mute' AND job = 'a'"), 2)
		for _, m := range []notice.Mute{{Job: "a", Until: until}, {Job: "a", Note: "x"}, {Until: until, Note: "x"}} {
			k.code(k.s.MuteAlerts(k.ctx, m, k.act("alert mute")), daybook.CodeInvalid)
		}
	}},
	{"after its end the same thing is a new alert with a number of its own", func(k *kit) {
		r := k.alarm(daybook.AlertJobLate, "a:1", "a")
		_, err := k.s.RecoverAlert(k.ctx, r.Alert.ID, k.now)
		k.ok(err)
		again := k.alarm(daybook.AlertJobLate, "a:1", "a")
		equal(k, "number", again.Number, 2)
		all, err := k.s.AlertRows(k.ctx, false, 0)
		k.ok(err)
		equal(k, "all", len(all), 2)
	}},
}
