package sim

import (
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
)

// fed is a world that is told of rows and entries by hand.
type fed struct{ *World }

func newFed() fed {
	w := &World{start: now(), base: now(), traced: fnv.New64a(), asks: newAsked(), far: &far{}}
	w.far.w, w.history = w, &history{w: w, live: map[string]*liveRow{}, runs: map[string]*runRow{}, steps: map[string]map[string]*stepRow{}, letter: map[string]*letterRow{},
		byHand: map[string]bool{}, last: map[string]*letterRow{}, alerts: map[string]*alertRow{}, cursor: map[string]int64{}, paused: map[string]bool{}, lines: map[string]string{},
		fences: map[string]int64{}, fires: map[string]bool{}, spans: map[string][]span{}}
	w.specs = []*spec{{Job: daybook.Job{Name: "renew"}}, {Job: daybook.Job{Name: "steps", Steps: true}}, {Job: daybook.Job{Name: "fan"}, fans: 2}}
	return fed{w}
}

// row is a change of a row, by its cells.
func (f fed) row(table, during string, cells ...string) {
	f.op(table, "UPDATE", during, cells...)
}

func (f fed) op(table, op, during string, cells ...string) {
	c := change{table, op, cells}
	f.history.take(c, during)
	f.history.together([]change{c}, during)
}

func (f fed) live(key, state, during string, fence int64, more ...string) {
	cells := []string{key, state, "", strconv.FormatInt(fence, 10), "c" + strconv.FormatInt(fence, 10), "", "0", "", "", "n0.1", "1"}
	for _, m := range more { // reason, claim or line
		name, value, _ := strings.Cut(m, "=")
		cells[map[string]int{"reason": 2, "claim": 4, "line": 7, "lease": 10}[name]] = value
	}
	f.row("live", during, cells...)
}

func (f fed) run(op, key, state, during string, more ...string) {
	cells := []string{key, state, "", strings.Split(key, ":")[0], label(key), "once", "", "", ""}
	for _, m := range more {
		name, value, _ := strings.Cut(m, "=")
		cells[map[string]int{"reason": 2, "effects": 5, "parent": 6, "serial": 8}[name]] = value
	}
	f.op("runs", op, during, cells...)
}

func (f fed) step(op, key, step, state string, generation, open string) {
	f.op("steps", op, "", key, step, state, generation, open, "1", "1", "1", "0")
}

func (f fed) books(kind, wireKey string) {
	e := entry{kind: kind, wireKey: wireKey}
	f.booked(e)
	f.far.book = append(f.far.book, e)
}

func (f fed) flies(wireKey string) {
	f.far.flying = append(f.far.flying, &request{entry: entry{kind: charge, wireKey: wireKey}})
}

// breaches are rows and entries that break a promise, as no planted bug may do in its seeds.
var breaches = map[string]func(f fed){
	"the cursor of renew goes back": func(f fed) {
		f.row("jobs", "", "renew", "20", "1", "0", "0")
		f.row("jobs", "", "renew", "10", "1", "0", "0")
	},
	"fire renew 1 is recorded twice": func(f fed) {
		f.op("triggers", "INSERT", "", "renew:a", "renew", "1", "schedule", "started")
		f.op("triggers", "INSERT", "", "renew:b", "renew", "1", "schedule", "started")
	},
	"the fence of renew:a falls from 2 to 1": func(f fed) {
		f.live("renew:a", "scheduled", "", 2)
		f.live("renew:a", "scheduled", "", 1)
	},
	"renew:a runs, and its fence did not rise by one: 1, 1": func(f fed) {
		f.live("renew:a", "retryable", "", 1)
		f.live("renew:a", "running", "", 1)
	},
	"renew:a has another claim under fence 1": func(f fed) {
		f.live("renew:a", "running", "", 1)
		f.live("renew:a", "running", "", 1, "claim=other")
	},
	"renew:b runs beside renew:a, and they wait for each other": func(f fed) {
		f.live("renew:a", "running", "", 1, "line=renew")
		f.live("renew:b", "running", "", 1, "line=renew")
	},
	"renew:a is held under fence 2, and is written by fence 1": func(f fed) {
		f.live("renew:a", "running", "", 2)
		f.live("renew:a", "retryable", "apply renew:a 1 report→retryable", 2)
	},
	"renew:a is declared over, and n0.1 is well since": func(f fed) {
		f.nodes = []*process{{w: f.World, name: "n0.1", well: now().Add(-time.Hour)}}
		f.live("renew:a", "running", "", 1)
		f.live("renew:a", "retryable", "apply renew:a 1 lost→retryable", 1)
	},
	"the key renew:a stands there twice": func(f fed) {
		f.run("INSERT", "renew:a", "", "plan")
		f.run("INSERT", "renew:a", "", "plan")
	},
	"renew:a was done, and is \"\"": func(f fed) {
		f.run("INSERT", "renew:a", "done", "plan")
		f.run("UPDATE", "renew:a", "", "plan")
	},
	"renew:a~undo is made, and nobody asked for it": func(f fed) { f.run("INSERT", "renew:a~undo", "", "") },
	"a replay made the key renew:a":                 func(f fed) { f.run("INSERT", "renew:a", "", "trigger replay renew:a") },
	"step charge of steps:a is forgotten":           func(f fed) { f.step("DELETE", "steps:a", "charge", "done", "1", "0") },
	"step charge of steps:a was done, and is begun": func(f fed) {
		f.books(charge, "steps:a#charge")
		f.step("INSERT", "steps:a", "charge", "done", "1", "0")
		f.step("UPDATE", "steps:a", "charge", "begun", "1", "0")
	},
	"step charge of steps:a is said to be done, and the far side does not have it": func(f fed) { f.step("INSERT", "steps:a", "charge", "done", "1", "0") },
	"step charge of steps:a is said not to have happened, and the far side has it": func(f fed) {
		f.books(charge, "steps:a#charge")
		f.step("INSERT", "steps:a", "charge", "not_done", "1", "0")
	},
	"step charge of steps:a is said not to have happened, and it is on its way": func(f fed) {
		f.flies("steps:a#charge")
		f.step("INSERT", "steps:a", "charge", "refused", "1", "0")
	},
	"step charge of steps:a gets the next wire key, and it did happen under the one before, or is on its way": func(f fed) {
		f.step("INSERT", "steps:a", "charge", "begun", "1", "0")
		f.flies("steps:a#charge")
		f.step("UPDATE", "steps:a", "charge", "begun", "2", "0")
	},
	"step charge of steps:a gets the next wire key while its outcome is open": func(f fed) {
		f.step("INSERT", "steps:a", "charge", "unknown", "1", "1")
		f.step("UPDATE", "steps:a", "charge", "begun", "2", "0")
	},
	"the dead letter of renew:a (failed) is not announced": func(f fed) { f.op("letters", "INSERT", "", "renew:a", "1", "failed", "open", "", "") },
	"renew:a happens after it was taken back": func(f fed) {
		f.asks.undone["renew:a"] = true
		f.books(refund, "renew:a#run~undo")
		f.books(charge, "renew:a")
	},
	"renew:a is given back, and nobody asked for it":         func(f fed) { f.books(refund, "renew:a#run~undo") },
	"renew:a run is given back, and it did not happen":       func(f fed) { f.books(refund, "renew:a#run~undo") },
	"renew:a run is given back, and is not known to be done": func(f fed) { f.books(refund, "renew:a#run~undo") },
	"charge of renew:a run a second time, as renew:a#run@2": func(f fed) {
		f.books(charge, "renew:a")
		f.books(charge, "renew:a#run@2")
	},
	"fan:a/s was listed, fan:a is fanned out, and there is no such run": func(f fed) {
		f.asks.by[attempt{"fan:a", 1}] = []string{"fan:a/s"}
		f.live("fan:a", "running", "", 1, "reason=fanned out")
	},
	"fan:a is done, and its fan:a/s is scheduled": func(f fed) {
		f.asks.listed["fan:a/s"] = true
		f.run("INSERT", "fan:a", "", "plan")
		f.run("INSERT", "fan:a/s", "scheduled", "list", "parent=fan:a")
		f.run("UPDATE", "fan:a", "done", "look")
	},
	"fan:a/s is made, and no listing named it":                             func(f fed) { f.run("INSERT", "fan:a/s", "scheduled", "list", "parent=fan:a") },
	"renew:a~2 is a second effect for one window, and nobody asked for it": func(f fed) { f.run("INSERT", "renew:a~2", "", "trigger manual renew:a~2") },
	"the key renew:a is free again":                                        func(f fed) { f.run("DELETE", "renew:a", "done", "prune") },
	"renew:a and renew:b are at work at once, under the serial key account": func(f fed) {
		f.run("INSERT", "renew:a", "", "plan", "serial=account")
		f.run("INSERT", "renew:b", "", "plan", "serial=account")
		f.live("renew:a", "running", "claim", 1)
		f.live("renew:b", "running", "claim", 1)
	},
	"1 acts of people never end": func(f fed) { f.acting = 1; f.unsettled() },
	"renew:a is never settled: scheduled": func(f fed) {
		f.run("INSERT", "renew:a", "", "plan")
		f.live("renew:a", "scheduled", "", 0)
		f.unsettled()
	},
	"the far side has renew:z, and there is no such run":    func(f fed) { f.books(charge, "renew:z"); f.strangers() },
	"renew:a is dead, and its letter is \"\"":               func(f fed) { f.endOf(row{key: "renew:a", job: "renew", state: "dead"}) },
	"renew:a is being undone, and nothing does it any more": func(f fed) { f.endOf(row{key: "renew:a", job: "renew", state: "done", reason: "undoing"}) },
	"steps:a charge is unknown, and the far side has it 1 times": func(f fed) {
		f.books(charge, "steps:a#charge")
		f.step("INSERT", "steps:a", "charge", "unknown", "1", "1")
		f.endOf(row{key: "steps:a", job: "steps", state: "retryable", effects: "once"})
	},
	"steps:a receipt is not recorded, and the far side has it": func(f fed) {
		f.books(charge, "steps:a#receipt")
		f.endOf(row{key: "steps:a", job: "steps", state: "retryable", effects: "once"})
	},
	"renew:a is done, and the far side has its run 0 times": func(f fed) { f.endOf(row{key: "renew:a", job: "renew", state: "done", effects: "once"}) },
	"renew:a is skipped, and the far side has its run": func(f fed) {
		f.books(charge, "renew:a")
		f.step("INSERT", "renew:a", "run", "done", "1", "0")
		f.endOf(row{key: "renew:a", job: "renew", state: "skipped", effects: "once"})
	},
	"renew:a: run happened 0 times, and was given back 1 times": func(f fed) {
		f.books(refund, "renew:a#run~undo")
		f.endOf(row{key: "renew:a", job: "renew", state: "cancelled", effects: "once"})
	},
	"renew:a is undone, and of run there are 1, given back 0": func(f fed) {
		f.books(charge, "renew:a")
		f.step("INSERT", "renew:a", "run", "done", "1", "0")
		f.endOf(row{key: "renew:a", job: "renew", state: "done", reason: "undone", effects: "once"})
	},
}

// wholeWorlds are what only a whole simulation shows: TestPlantedBugs has a bug for those that are marked.
var wholeWorlds = []string{
	"the cursor of %s passes its window", // planted
	"goes on with %s under fence",        // planted
	"its own transaction wrote",          // planted
	"never ends %d flights", "never takes the definitions", "the ledger failed by itself",
	"window %s:%s fired at %s", "stands still since", "asked again, and",
}

// TestEachCheckerCanFail: what breaks a promise is said to, by each checker there is.
func TestEachCheckerCanFail(t *testing.T) {
	var said []string
	for want, do := range breaches {
		f := newFed()
		do(f)
		if !slices.ContainsFunc(f.report.Faults, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("said %q, want %q", f.report.Faults, want)
		}
		said = append(said, f.report.Faults...)
	}
	for _, format := range formats(t) {
		pattern := regexp.MustCompile("^" + regexp.MustCompile(`%[a-z]`).ReplaceAllString(regexp.QuoteMeta(format), ".*") + "$")
		seen := slices.ContainsFunc(said, pattern.MatchString) || slices.ContainsFunc(wholeWorlds, func(s string) bool { return strings.Contains(format, s) })
		if !seen {
			t.Errorf("nobody has seen this checker fail: %s", format)
		}
	}
}

// formats are the sentences of all checkers.
func formats(t *testing.T) (list []string) {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok || len(c.Args) == 0 {
				return true
			}
			if s, ok := c.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "fault" {
				text, err := strconv.Unquote(c.Args[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, text)
			}
			return true
		})
	}
	if len(list) < 40 {
		t.Fatalf("only %d checkers", len(list))
	}
	return list
}
