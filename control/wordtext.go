package control

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/lang"
)

// byWhom names a door, and the person who came by it.
func byWhom(source daybook.Source, actor string) daybook.Text {
	switch {
	case source == "" && actor == "":
		return daybook.Say("somebody")
	case actor == "":
		return daybook.Say("%s", source)
	case source == "":
		return daybook.Say("%s", actor)
	}
	return daybook.Say("%s (%s)", actor, source)
}

func whoever(name string) daybook.Text {
	if name == "" {
		return daybook.Say("nobody known")
	}
	return daybook.Say("%s", name)
}

// counted writes counts in brackets, as (20 charges, 1 mails), in the order of their names, which are the job's own.
func counted(counts map[string]int64) daybook.Text {
	if len(counts) == 0 {
		return daybook.Text{}
	}
	words := make(daybook.Words, 0, len(counts))
	for _, name := range sortedKeys(counts) {
		words = append(words, fmt.Sprintf("%d %s", counts[name], name))
	}
	return daybook.Say(" (%s)", words)
}

// stored is what a row keeps in English of why something ended, with its instants in the zone of the run.
func stored(s string, r *daybook.Run) daybook.Stored {
	return daybook.Stored(lang.Local(s, location(r.Zone)))
}

func lastError(r *daybook.Run) daybook.Text {
	text := r.LastError
	if r.Letter != nil && r.Letter.Error != "" && (r.LastError == "" || r.Letter.State == daybook.LetterOpen) {
		text = r.Letter.Error
	}
	if text == "" {
		return daybook.Say("it did not say why")
	}
	return daybook.Say("%s", stored(strings.TrimSuffix(daybook.Clip(oneLine(text), 200), "."), r))
}

// oneLine keeps a text from breaking the line it stands in.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return ' '
		}
		return r
	}, s)
}

// clock writes an instant in a zone: the time of the day, with its date unless that is the date of now.
func clock(t, now time.Time, loc *time.Location) daybook.Text {
	if t.IsZero() {
		return daybook.Say("an unknown time")
	}
	t = t.In(loc)
	if t.Format(time.DateOnly) == now.In(loc).Format(time.DateOnly) {
		return daybook.Say("%s", t.Format(time.TimeOnly))
	}
	return daybook.Say("%s", t.Format(time.DateTime))
}

// longClock writes an instant with date and zone.
func longClock(t time.Time, loc *time.Location) string {
	return t.In(loc).Format("2006-01-02 15:04") + " " + loc.String()
}

// short writes a duration with its two largest units.
func short(d time.Duration) daybook.Text {
	d = d.Round(time.Second)
	days, hours, minutes, seconds := d/(24*time.Hour), d%(24*time.Hour)/time.Hour, d%time.Hour/time.Minute, d%time.Minute/time.Second
	switch {
	case days > 0 && hours > 0:
		return daybook.Say("%d d %d h", days, hours)
	case days > 0:
		return daybook.Say("%d d", days)
	case hours > 0 && minutes > 0:
		return daybook.Say("%d h %d m", hours, minutes)
	case hours > 0:
		return daybook.Say("%d h", hours)
	case minutes > 0 && seconds > 0:
		return daybook.Say("%d m %d s", minutes, seconds)
	case minutes > 0:
		return daybook.Say("%d m", minutes)
	}
	return daybook.Say("%d s", max(seconds, 0))
}

func sortedKeys[K ~string, V any](m map[K]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, string(k))
	}
	sort.Strings(keys)
	return keys
}
