// Package notice has the rows that the store and the room alert share: what is to be told, one telling of it on one
// channel, and a mute. It holds data and no rule, and calls nobody. The rows stand here and not in the dictionary because
// nobody who uses the library ever meets them.
package notice

import (
	"strconv"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// Row is an alert with what the sender keeps beside it.
type Row struct {
	daybook.Alert           // its ID is the row's; people use Number
	Number        int64     // al_1, al_2 …; in the order in which the sender, or a list, met them
	Round         int       // tellings so far: the next one's sends are numbered Round+1
	New           bool      // it was never looked at
	Next          time.Time // when it is to be looked at again; zero: never, unless it is new
	ToldAt        time.Time // last told; zero: not yet
	Repeated      bool      // the letter was told once more, because it stood open for 24 h
	AckedAt       time.Time
	AckedBy       string
	AckNote       string
	MutedUntil    time.Time // of its job, at the time of reading
	Reached       []string  // the channels that have it, or are being given it, in the order of their names
}

// ID is how people name an alert.
func (r Row) ID() string { return ID(r.Number) }

const prefix = "al_"

// ID writes the number of an alert as people see it.
func ID(number int64) string { return prefix + strconv.FormatInt(number, 10) }

// ParseID is the inverse of ID; the prefix may be missing. It returns 0 for anything else.
func ParseID(id string) int64 {
	n, err := strconv.ParseInt(strings.TrimPrefix(id, prefix), 10, 64)
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// Purpose says why something is told.
type Purpose string

// Purposes.
const (
	First     Purpose = "first"      // it was not told before
	Remind    Purpose = "remind"     // nobody acknowledged it
	StillOpen Purpose = "still open" // a letter stands open for 24 h
	Recovered Purpose = "recovered"
)

// Telling is what was decided about one alert: the sends, and what the row is afterwards. It is written only while the row
// is as it was read.
type Telling struct {
	Row      Row
	Sends    []Send // all of one round; empty: nothing is told now
	Next     time.Time
	Repeated bool
	Finished bool // nothing more is ever told: sends that were not made yet are dropped
	At       time.Time
}

// SendState is where a send stands.
type SendState string

// States of a send.
const (
	SendDue     SendState = "due" // to be made, or made again; claimed while Lease is not over
	SendDone    SendState = "sent"
	SendFailed  SendState = "failed"  // given up
	SendDropped SendState = "dropped" // overtaken by an acknowledgement or a recovery before it was made
)

// Send is one text for one channel. Key names it for ever: a send that is made again, because nobody knows whether it was
// made, has the same key and the same text.
type Send struct {
	Key      string // al_91/phone/1
	Alert    string // ID of the alert's row
	Channel  string
	Purpose  Purpose
	Via      string // the channel that failed, when this one is its fallback
	Lang     string
	Subject  string
	Body     string
	Short    string
	Data     string // JSON, for programs
	State    SendState
	Due      time.Time
	Claim    string
	Lease    time.Time
	Tries    int // claims, ever
	Failures int // what the ladder counts
	Error    string
	MadeAt   time.Time
	EndedAt  time.Time
}

// SendKey is the key of a telling of an alert on a channel.
func SendKey(number int64, channel string, round int) string {
	return ID(number) + "/" + channel + "/" + strconv.Itoa(round)
}

// Claim asks for sends.
type Claim struct {
	ID    string // random: a result must match it
	Lease time.Time
	Limit int
}

// Mute keeps a job's alerts from being sent until an instant. It hides nothing.
type Mute struct {
	Job   string
	Since time.Time
	Until time.Time
	By    string
	Note  string
}
