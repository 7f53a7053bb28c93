package main

import (
	"fmt"
	"html"
	"strings"
)

// Sizes of a plot, in its own units.
const (
	plotWidth = 760
	nameWidth = 190
	textWidth = 150 // right of the longest bar
	barHeight = 16
	barGap    = 6
	panelGap  = 34
)

// plot draws a scenario: for each store and measure a panel with a bar for each peer, and a line from its lowest to its highest
// round. Daybook's bars have a colour; the ceiling's are hollow.
func plot(r *results, s *scenario) string {
	var b strings.Builder
	y := 8
	for _, st := range []store{onPostgres, onSQLite} {
		for _, m := range s.Measures {
			y = panel(&b, r, s, m, st, y)
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="12">
<style>text { fill: #333 } .us { fill: #1f6feb } .them { fill: #9aa4b2 } .bare { fill: none; stroke: #9aa4b2 } .range { stroke: #333; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .range { stroke: #ddd } }</style>
%s</svg>
`, plotWidth, y, b.String())
}

func panel(b *strings.Builder, r *results, s *scenario, m measure, st store, y int) int {
	most := 0.0
	var names []string
	for _, name := range r.beside(st) {
		if v, ok := r.reached(s, m, name); ok {
			names, most = append(names, name), max(most, v.Max)
		}
	}
	if len(names) == 0 || most <= 0 {
		return y
	}
	better := "more is better"
	if m.Less {
		better = "less is better"
	}
	title := m.Name
	if m.Unit != "" {
		title += ", " + m.Unit
	}
	fmt.Fprintf(b, `<text x="0" y="%d" font-weight="bold">%s</text>`+"\n", y+14, html.EscapeString(fmt.Sprintf("%s: %s (%s)", st, title, better)))
	y += 24
	for _, name := range names {
		v, _ := r.reached(s, m, name)
		x := func(value float64) float64 { return nameWidth + value/most*(plotWidth-nameWidth-textWidth) }
		class := "them"
		switch {
		case name == ours[st]:
			class = "us"
		case isBare(name):
			class = "bare"
		}
		middle := float64(y) + barHeight/2.0
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, nameWidth-8, y+12, html.EscapeString(r.Peers[name].Name))
		fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d"/>`, class, nameWidth, y, x(v.Median)-nameWidth, barHeight)
		fmt.Fprintf(b, `<line class="range" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x(v.Min), middle, x(v.Max), middle)
		fmt.Fprintf(b, `<text x="%.1f" y="%d">%s</text>`+"\n", x(v.Max)+6, y+12, number(v.Median))
		y += barHeight + barGap
	}
	return y + panelGap - 24
}
