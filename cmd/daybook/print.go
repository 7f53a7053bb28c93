package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
	"github.com/daybook-run/daybook/internal/lang"
)

// grid is a table for people: columns as wide as they are shown, whatever the script of the text.
type grid struct {
	head []string
	rows [][]any // string, moment or daybook.Text
	tail bool    // the last column is free text, which a terminal's edge may cut
}

// moment is an instant in the zone it is to be shown in. The zero instant is shown as a dash.
type moment struct {
	at  time.Time
	loc *time.Location
}

func (g *grid) add(cells ...any) { g.rows = append(g.rows, cells) }

// print writes the table. Instants of one zone have it in the head of their column, else beside each. On a terminal free
// text at the end is cut at its edge; other columns are never cut.
func (a *app) print(g *grid) error {
	if len(g.rows) == 0 {
		return nil
	}
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatDefault
	style.Color = table.ColorOptions{}
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	common := g.zone()
	head := make(table.Row, len(g.head))
	for i, h := range g.head {
		head[i] = a.lang.Phrase(h)
		if common != nil && g.isMoment(i) {
			head[i] = a.lang.F("%s (%s)", a.lang.Phrase(h), common)
		}
	}
	t.AppendHeader(head)
	for _, cells := range g.rows {
		row := make(table.Row, len(cells))
		for i, c := range cells {
			row[i] = a.cell(c, common == nil)
		}
		t.AppendRow(row)
	}
	lines := strings.Split(t.Render(), "\n")
	w := a.width()
	const least = 10 // of free text, or cutting it would leave nothing to read
	cut := g.tail && w >= displayWidth(lines[0][:strings.LastIndex(lines[0], a.lang.Phrase(g.head[len(g.head)-1]))])+least
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
		if cut && displayWidth(lines[i]) > w {
			lines[i] = text.Trim(lines[i], w-1) + "…"
		}
	}
	_, err := io.WriteString(a.Stdout, strings.Join(lines, "\n")+"\n")
	return err
}

// zone returns the zone of all instants of the table, nil when they have several.
func (g *grid) zone() *time.Location {
	var loc *time.Location
	for _, row := range g.rows {
		for _, c := range row {
			m, ok := c.(moment)
			if !ok || m.at.IsZero() {
				continue
			}
			if loc != nil && loc.String() != m.loc.String() {
				return nil
			}
			loc = m.loc
		}
	}
	return loc
}

func (g *grid) isMoment(column int) bool {
	for _, row := range g.rows {
		if m, ok := row[column].(moment); ok && !m.at.IsZero() {
			return true
		}
	}
	return false
}

// cell writes what stands in a table.
func (a *app) cell(c any, zone bool) string {
	switch c := c.(type) {
	case moment:
		if c.at.IsZero() {
			return "—"
		}
		if zone {
			return stamp(c.at, c.loc)
		}
		return c.at.In(c.loc).Format(time.DateTime)
	case string:
		if c == "" {
			return "—"
		}
		return oneLine(c)
	case daybook.Text:
		return a.cell(a.lang.Say(c), zone)
	}
	return oneLine(fmt.Sprint(c))
}

// width returns the columns of the terminal that stdout is; 0 when it is none.
func (a *app) width() int {
	if a.Width == nil {
		return 0
	}
	return a.Width()
}

// wrapped writes a text in lines that fit 80 columns, or the terminal, each behind an indentation.
func (a *app) wrapped(w io.Writer, indent, s string) {
	for _, line := range wrap(oneLine(s), a.columns()-displayWidth(indent)) {
		fmt.Fprintf(w, "%s%s\n", indent, line)
	}
}

// columns is how wide a text is written: 80, or as wide as the terminal, within reason.
func (a *app) columns() int {
	if n := a.width(); n > 40 {
		return min(n, 120)
	}
	return 80
}

// wrap breaks a text at its spaces, and a word that is longer than a line between its wide signs. No line begins with what
// closes (，。）) or ends with what opens.
func wrap(s string, columns int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		space, list := " ", []string{word}
		if displayWidth(word) > columns {
			list = pieces(word)
		}
		for _, piece := range list {
			switch {
			case line == "":
				line = piece
			case displayWidth(line)+displayWidth(space)+displayWidth(piece) <= columns:
				line += space + piece
			default:
				lines, line = append(lines, line), piece
			}
			space = ""
		}
	}
	return append(lines, line)
}

// pieces cuts a word where a line may end inside it: on both sides of a wide sign.
func pieces(word string) []string {
	var list []string
	last := rune(0)
	for _, r := range word {
		apart := last != 0 && (wide(last) || wide(r)) && !strings.ContainsRune("，。；：！？、）”…", r) && !strings.ContainsRune("（“", last)
		if apart || len(list) == 0 {
			list = append(list, "")
		}
		list[len(list)-1] += string(r)
		last = r
	}
	return list
}

func wide(r rune) bool { return r > unicode.MaxASCII && lang.Width(string(r)) > 1 }

// pad fills a text with spaces up to a display width.
func pad(s string, columns int) string { return text.Pad(s, columns, ' ') }

func displayWidth(s string) int { return text.StringWidthWithoutEscSequences(s) }

// stamp writes an instant with its zone.
func stamp(t time.Time, loc *time.Location) string {
	return t.In(loc).Format(time.DateTime) + " " + loc.String()
}

// ownZone returns a zone by its name, UTC where it is not known here.
func ownZone(name string) *time.Location {
	if name == "" {
		return time.UTC
	}
	loc, err := calendar.Zone(name)
	if err != nil {
		return time.UTC
	}
	return loc
}

// zoneOf returns the zone to show the times of a job or run in: --show-tz, or its own; what is about no job has that of the
// file.
func (a *app) zoneOf(name string) *time.Location {
	return a.displayZone(ownZone(cmp.Or(name, a.fileZone)))
}

// stored is what a row keeps in English of why something ended, with its instants in the zone of its job or run.
func (a *app) stored(s, zone string) daybook.Stored {
	return daybook.Stored(lang.Local(s, a.zoneOf(zone)))
}

// moment makes a cell of an instant.
func (a *app) moment(t time.Time, zone string) moment { return moment{t, a.zoneOf(zone)} }

// short writes a duration with its two largest units: 1d4h, 5m34s, 12s.
func short(d time.Duration) daybook.Text {
	if d < 0 {
		return daybook.Say("-%s", short(-d))
	}
	switch {
	case d < time.Second:
		return daybook.Say("%dms", d.Milliseconds())
	case d < time.Minute:
		return daybook.Say("%ds", d/time.Second)
	case d < time.Hour:
		return daybook.Say("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return daybook.Say("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return daybook.Say("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// oneLine keeps what a job, a far side or a person wrote from breaking the line it stands in, or the terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r >= '\u202A' && r <= '\u202E' || r >= '\u2066' && r <= '\u2069' ||
			r == '\u200E' || r == '\u200F' || r == '\uFEFF' {
			return ' '
		}
		return r
	}, s)
}

// glyphs stand beside the word of a state, never instead of it.
var glyphs = map[daybook.State]string{
	daybook.Scheduled: "◷", daybook.Running: "▶", daybook.Retryable: "↻", daybook.Done: "✓",
	daybook.Dead: "✕", daybook.Skipped: "⤼", daybook.Coalesced: "⇥", daybook.Cancelled: "⊘",
}

// colours of glyphs, on a terminal that takes them.
var colours = map[string]string{"✓": "32", "✕": "31", "!": "33", "?": "33", "↻": "33", "▶": "36"}

// mark returns a glyph, coloured where colours are welcome.
func (a *app) mark(glyph string) string {
	if code := colours[glyph]; code != "" && a.width() > 0 && !a.flags.noColor && !a.dumb() {
		return "\x1b[" + code + "m" + glyph + "\x1b[0m"
	}
	return glyph
}

// dumb reports a terminal that shows ASCII only.
func (a *app) dumb() bool {
	term, _ := a.LookupEnv("TERM")
	return term == "dumb" && a.width() > 0
}

// plainASCII replaces the signs that Daybook itself writes: each stands with a word.
var plainASCII = strings.NewReplacer("→", "->", "·", "-", "…", "...", "—", "-", "✓", "+", "✕", "x", "◷", "o", "▶", ">", "↻", "@",
	"⤼", "~", "⇥", "&", "⊘", "0", "‖", "=", "❄", "*", "✎", "m", "≠", "#", "↶", "<", "∅", "-")

type asciiWriter struct{ w io.Writer }

// Write implements io.Writer.
func (w asciiWriter) Write(p []byte) (int, error) {
	_, err := io.WriteString(w.w, plainASCII.Replace(string(p)))
	return len(p), err
}

// line writes a line of the answer.
func (a *app) line(format string, args ...any) error {
	_, err := fmt.Fprintln(a.Stdout, oneLine(a.lang.F(format, args...)))
	return err
}

// row writes a line of a description, unless there is nothing to say.
func (a *app) row(w io.Writer, label, format string, args ...any) {
	if text := oneLine(a.lang.F(format, args...)); strings.TrimSpace(text) != "" {
		fmt.Fprintf(w, "  %s%s\n", pad(a.lang.Phrase(label), 11), text)
	}
}

// next suggests a command, if there is one.
func (a *app) next(command string) {
	if command != "" {
		a.say("  → %s", command)
	}
}

// nextText suggests what to do, if there is something. A line of `daybook once` names the ledger: without one it would take
// one of its own, and the work would be done again.
func (a *app) nextText(do daybook.Text) {
	if rest, ok := strings.CutPrefix(do.String(), "daybook once "); ok {
		do = daybook.Say("%s", "daybook "+a.ledgerFlags()+"once "+rest)
	}
	if !do.IsZero() {
		a.say("  → %s", do)
	}
}
