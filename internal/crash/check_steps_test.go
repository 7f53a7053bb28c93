package crash

import (
	"cmp"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/gateway"
)

// murder is that somebody was killed, or asked to end, who might have known how something ended.
type murder struct {
	at   time.Time
	key  string // empty: everybody's
	job  string // empty: of every job
	undo bool   // only those are meant whose end the daybook that serves waits for
}

// deeds is what the books outside say of the renewals.
type deeds struct {
	charges, refunds map[string][]gateway.Line // by key and step, as the customer and the day say
	asked            map[string][]gateway.Line // requests for a refund
	acts             map[string][]act          // of people, by key
	starved          map[string][]time.Time    // attempts, by key, whose daybook was too slow to keep its lease, and ended them itself
	opened           []opened
}

type act struct {
	at     time.Time
	action string
}

// opened is a letter with how many alerts told of it.
type opened struct {
	key, kind string
	effect    string // that its error names, or nothing
	at        time.Time
	closedBy  string
	alerts    int
}

var effectNamed = regexp.MustCompile(`effect (\w+):`)

func (c *chaos) readDeeds() *deeds {
	c.t.Helper()
	d := &deeds{charges: map[string][]gateway.Line{}, refunds: map[string][]gateway.Line{}, asked: map[string][]gateway.Line{}, acts: map[string][]act{},
		starved: map[string][]time.Time{}}
	lines, err := gateway.ReadBook(c.book)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, l := range lines {
		job, step, ok := strings.Cut(l.Customer, "/")
		what := job + ":" + l.Day + "#" + step
		switch {
		case !ok:
		case l.Kind == gateway.KindCharge && l.Status == gateway.Charged:
			d.charges[what] = append(d.charges[what], l)
		case l.Kind == gateway.KindRefund:
			d.refunds[what] = append(d.refunds[what], l)
		case l.Kind == gateway.KindRequest && l.Path == "/refunds":
			d.asked[what] = append(d.asked[what], l)
		}
	}
	c.rows(`SELECT key, action, at_us FROM daybook_activity`, func(rows *sql.Rows) error {
		var key, action string
		var us int64
		err := rows.Scan(&key, &action, &us)
		d.acts[key] = append(d.acts[key], act{time.UnixMicro(us), action})
		return err
	})
	c.rows(`SELECT key, claimed_us FROM daybook_attempts WHERE question = 0 AND error || late_error LIKE '%the lease was lost%'`, func(rows *sql.Rows) error {
		var key string
		var us int64
		err := rows.Scan(&key, &us)
		d.starved[key] = append(d.starved[key], time.UnixMicro(us))
		return err
	})
	c.rows(`SELECT l.key, l.kind, l.error, l.opened_us, l.closed_by, COUNT(a.id) FROM daybook_letters l
  LEFT JOIN daybook_alerts a ON a.key IN (l.key, l.parent) AND a.kind IN ('dead_letter', 'unknown_outcome') AND (a.closed_us = 0 OR a.closed_us >= l.opened_us)
    AND (l.closed_us = 0 OR a.at_us <= l.closed_us)
  WHERE l.job LIKE 'renew-%' GROUP BY l.id, l.key, l.kind, l.error, l.opened_us, l.closed_by`, func(rows *sql.Rows) error {
		var o opened
		var us int64
		var said string
		err := rows.Scan(&o.key, &o.kind, &said, &us, &o.closedBy, &o.alerts)
		if m := effectNamed.FindStringSubmatch(said); m != nil {
			o.effect = m[1]
		}
		o.at = time.UnixMicro(us)
		d.opened = append(d.opened, o)
		return err
	})
	return d
}

// stepFigures are what a check of renewals counted.
type stepFigures struct{ keys, undone, compensated, charged, refunded, letters, unknown, twice int }

func (f stepFigures) String() string {
	return fmt.Sprintf("renewals: %d done, %d undone, %d compensated; charged %d, refunded %d; %d letters, of which %d unknown; duplicates %d",
		f.keys-f.undone-f.compensated, f.undone, f.compensated, f.charged, f.refunded, f.letters, f.unknown, f.twice)
}

// checkRenewals looks whether the books outside say what the ledger says: each charge once, and once back where it says so.
func (c *chaos) checkRenewals(v *evidence) (f stepFigures) {
	c.t.Helper()
	d := c.readDeeds()
	for i := range v.runs {
		r := &v.runs[i]
		if !strings.HasPrefix(r.job, renewals) || strings.HasSuffix(r.key, "~undo") {
			continue
		}
		if r.job == fan && !strings.Contains(r.key, "/") { // of all its subjects
			if r.state != "done" {
				c.t.Errorf("%s is %s (%s), and its subjects are at their end", r.key, r.state, r.reason)
			}
			continue
		}
		f.keys++
		back := 0
		switch {
		case r.state == "done" && r.reason == "undone":
			f.undone++
			back = 1
		case r.state == "dead" && r.reason == "compensated":
			f.compensated++
			back = 1
		case r.state != "done" || r.reason != "":
			c.t.Errorf("%s is %s (%s), which is no end", r.key, r.state, r.reason)
			continue
		}
		for _, step := range steps {
			what := r.key + "#" + step
			charges, refunds := len(d.charges[what]), len(d.refunds[what])
			f.charged, f.refunded = f.charged+charges, f.refunded+refunds
			f.twice += max(charges-1, 0) + max(refunds-1, 0)
			if charges > 1 || charges == 0 && r.state == "done" || refunds != charges*back {
				c.t.Errorf("%s is %s (%s): %s has %d charges and %d refunds", r.key, r.state, r.reason, step, charges, refunds)
			}
			c.checkRefunds(d, what)
		}
		c.checkBlind(v, d, r)
	}
	for what := range d.charges {
		if key, _, _ := strings.Cut(what, "#"); v.byKey[key] == nil {
			c.t.Errorf("%s was charged and is not in the ledger", what)
		}
	}
	f.letters, f.unknown = c.checkLetters(v, d)
	return f
}

// checkRefunds looks for a refund that was asked for under another wire key once it was booked: the gateway refuses a second
// one, others would not.
func (c *chaos) checkRefunds(d *deeds, what string) {
	for _, booked := range d.refunds[what] {
		for _, l := range d.asked[what] {
			if l.Key != booked.Key && l.Time.After(booked.Time) {
				c.t.Errorf("%s was refunded under %s, and asked for again under %s", what, booked.Key, l.Key)
			}
		}
	}
}

// checkBlind looks whether something of which nobody can be asked was sent again though nobody had said that it did not happen:
// a careful command, or a person who had looked.
func (c *chaos) checkBlind(v *evidence, d *deeds, r *runRow) {
	if r.job != renewals+"neither" {
		return
	}
	var sent []entry
	told := map[int]int{}
	for _, e := range v.diary[r.key] {
		switch e.What {
		case "sent":
			sent = append(sent, e)
		case "told":
			told[e.Pid] = e.Said
		}
	}
	slices.SortFunc(sent, func(a, b entry) int { return cmp.Or(cmp.Compare(stem(a.Wire), stem(b.Wire)), a.At.Compare(b.At)) })
	for i := 1; i < len(sent); i++ {
		last, again := sent[i-1], sent[i]
		if stem(last.Wire) != stem(again.Wire) {
			continue
		}
		code, answered := told[last.Pid]
		decided := slices.ContainsFunc(d.acts[runOf(again)], func(a act) bool {
			return strings.HasPrefix(a.action, "resolve ") && strings.HasSuffix(a.action, "not-done") && a.at.After(last.At) && a.at.Before(again.At)
		})
		switch {
		case again.Wire == last.Wire && answered && code == exitNotDone:
		case again.Wire != last.Wire && (answered && code == exitPermanent || decided):
		default:
			c.t.Errorf("%s was sent by %d, who said %d (%t), and again as %s by %d", last.Wire, last.Pid, code, answered, again.Wire, again.Pid)
			c.story(runOf(again))
		}
	}
}

// runOf is the key of the run that sent something: an undo is told the key of what it takes back.
func runOf(e entry) string {
	if strings.Contains(e.Wire, "~undo") {
		return e.Key + "~undo"
	}
	return e.Key
}

// stem is a wire key without the number of its generation.
func stem(wireKey string) string {
	i := strings.LastIndexByte(wireKey, '#')
	if i < 0 {
		return wireKey
	}
	step, _, _ := strings.Cut(wireKey[i:], "@")
	return wireKey[:i] + step
}

// checkLetters looks whether each letter was told of, and whether whatever is called unknown could be known by nobody then: a send has
// no clear answer, somebody was killed meanwhile who might have had it, or it was told too late.
func (c *chaos) checkLetters(v *evidence, d *deeds) (letters, unknown int) {
	for _, l := range d.opened {
		letters++
		if l.alerts == 0 {
			c.t.Errorf("%s: nobody was told of its letter of kind %s, opened %s and closed by %q", l.key, l.kind, l.at.UTC().Format("15:04:05.000"), l.closedBy)
			c.story(l.key)
		}
		if l.kind != string(daybook.LetterUnknown) {
			continue
		}
		unknown++
		if !c.unanswered(v, l) && !c.murdered(v, d, l) && !c.onItsWay(v, l) {
			c.t.Errorf("%s is called unknown at %s, and the gateway had answered", l.key, l.at.UTC().Format("15:04:05.000"))
			c.story(l.key)
		}
	}
	return letters, unknown
}

// unanswered reports whether what the last try before a letter sent, if anything, was not all answered clearly; of the effect that the
// letter names, if it names one: it may have begun, and never come to its first line.
func (c *chaos) unanswered(v *evidence, l opened) bool {
	type try struct {
		pid  int
		wire string
	}
	told := map[try]int{}
	entries := v.diary[strings.TrimSuffix(l.key, "~undo")]
	for _, e := range entries {
		if e.What == "told" {
			told[try{e.Pid, e.Wire}] = e.Said
		}
	}
	from, clear := claimedBefore(v, l), false
	for _, e := range entries {
		if e.What != "sent" || runOf(e) != l.key || e.At.After(l.at) || l.effect != "" && !strings.HasSuffix(strings.TrimSuffix(stem(e.Wire), "~undo"), "#"+l.effect) {
			continue
		}
		code, answered := told[try{e.Pid, e.Wire}]
		if !answered || code == exitUnclear {
			return true
		}
		clear = clear || e.At.After(from)
	}
	return !clear
}

// onItsWay reports whether whoever had the answer was at work yet when the letter was opened, after his lease, and closed it by
// his report; or had it since less than a lease when nobody reported, so that it was not written before the lease was over.
func (c *chaos) onItsWay(v *evidence, l opened) bool {
	from := claimedBefore(v, l)
	lost := slices.ContainsFunc(v.tries[l.key], func(a tryRow) bool { return time.UnixMicro(a.claimed).Equal(from) && a.result == "lost" })
	for _, e := range v.diary[strings.TrimSuffix(l.key, "~undo")] {
		if lost && e.What == "told" && runOf(e) == l.key && e.At.Before(l.at) && l.at.Sub(e.At) < lease {
			return true
		}
	}
	if l.closedBy != "late report" {
		return false
	}
	var fence int64
	for _, a := range v.tries[l.key] {
		if at := time.UnixMicro(a.claimed); at.Before(l.at) {
			fence = max(fence, a.fence)
		}
	}
	began, ended := strings.HasSuffix(l.key, "~undo"), false // the run of an undo has no beginning of its own
	for _, e := range v.diary[strings.TrimSuffix(l.key, "~undo")] {
		if runOf(e) != l.key || e.Fence != fence {
			continue
		}
		began = began || e.What == "begin"
		ended = ended || e.What == "end" && e.At.Before(l.at)
	}
	return began && !ended
}

// claimedBefore is when the last try before a letter was claimed.
func claimedBefore(v *evidence, l opened) (from time.Time) {
	for _, a := range v.tries[l.key] {
		if at := time.UnixMicro(a.claimed); at.Before(l.at) && at.After(from) {
			from = at
		}
	}
	return from
}

// openSince is when the first try was claimed that sent what the last try before a letter sent: it stays open when nobody reports it,
// and no refusal of a later one closes it.
func openSince(v *evidence, l opened) time.Time {
	from, wire := claimedBefore(v, l), ""
	var sent []entry
	for _, e := range v.diary[strings.TrimSuffix(l.key, "~undo")] {
		if e.What == "sent" && runOf(e) == l.key && e.At.Before(l.at) {
			sent = append(sent, e)
			wire = e.Wire
		}
	}
	for _, e := range sent {
		for _, a := range v.tries[l.key] {
			if at := time.UnixMicro(a.claimed); e.Wire == wire && a.fence == e.Fence && at.Before(from) {
				from = at
			}
		}
	}
	return from
}

// murdered reports whether somebody was killed, or asked to end, who might have had the answer.
func (c *chaos) murdered(v *evidence, d *deeds, l opened) bool {
	from := openSince(v, l)
	if slices.ContainsFunc(d.starved[l.key], func(at time.Time) bool { return at.Before(l.at) }) {
		return true
	}
	for _, m := range c.murders {
		if m.at.Before(l.at) && m.at.After(from) && (m.key == "" || m.key == strings.TrimSuffix(l.key, "~undo")) && (m.job == "" || strings.HasPrefix(l.key, m.job+":")) && (!m.undo || strings.HasSuffix(l.key, "~undo")) {
			return true
		}
	}
	return slices.ContainsFunc(d.acts[l.key], func(a act) bool { return a.action == "cancel" && a.at.After(from) && a.at.Before(l.at) })
}
