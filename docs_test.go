package daybook

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func stateMachinePage(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("docs/internals/state-machine.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func compareArrows(t *testing.T, found []Arrow) {
	t.Helper()
	for i, a := range found {
		if !slices.Contains(Arrows, a) {
			t.Errorf("the page has %v, which nothing takes", a)
		}
		if slices.Contains(found[:i], a) {
			t.Errorf("the page has %v twice", a)
		}
	}
	for _, a := range Arrows {
		if !slices.Contains(found, a) {
			t.Errorf("the page does not have %v", a)
		}
	}
}

var arrowRow = regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| ([a-z ]+) \\| `([a-z]+)` \\|")

func TestThePageHasEveryArrow(t *testing.T) {
	var found []Arrow
	for _, m := range arrowRow.FindAllStringSubmatch(stateMachinePage(t), -1) {
		found = append(found, Arrow{From: State(m[1]), On: Move(m[2]), To: State(m[3])})
	}
	compareArrows(t, found)
}

var arrowDrawn = regexp.MustCompile(`(?m)^    ([a-z]+) --> ([a-z]+): ([a-z ,]+)$`)

func TestTheDrawingHasEveryArrow(t *testing.T) {
	var found []Arrow
	for _, m := range arrowDrawn.FindAllStringSubmatch(stateMachinePage(t), -1) {
		for on := range strings.SplitSeq(m[3], ", ") {
			found = append(found, Arrow{From: State(m[1]), On: Move(on), To: State(m[2])})
		}
	}
	compareArrows(t, found)
}

var stateRow = regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| [A-Z]")

func TestThePageHasEveryState(t *testing.T) {
	var found []State
	for _, m := range stateRow.FindAllStringSubmatch(stateMachinePage(t), -1) {
		found = append(found, State(m[1]))
	}
	if !slices.Equal(found, States) {
		t.Errorf("the page has %v, want %v", found, States)
	}
}
