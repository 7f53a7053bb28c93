package daybook

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// eachLine calls f for every line of a text table: columns are separated by '|', the first of them names the case, and
// lines that are empty or begin with '#' are not cases.
func eachLine(t *testing.T, table string, columns int, f func(t *testing.T, cells []string)) {
	t.Helper()
	names := map[string]bool{}
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.Join(strings.Fields(cells[i]), " ")
		}
		if len(cells) != columns {
			t.Fatalf("%d columns, want %d: %s", len(cells), columns, line)
		}
		t.Run(cells[0], func(t *testing.T) { f(t, cells) })
		name := strings.Join(cells[:columns-1], "|")
		if names[name] {
			t.Errorf("the table has this line twice: %s", line)
		}
		names[name] = true
	}
}

// duration reads the durations of tables; "" is 0.
func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// number reads the numbers of tables.
func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
