package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/daybook-run/daybook/internal/gateway"
)

// Environment of the commands that the binary starts: this test program again, told by envHelper what to be.
const (
	envHelper  = "DAYBOOK_CRASH_HELPER"
	envGateway = "DAYBOOK_CRASH_GATEWAY"
	envDiary   = "DAYBOOK_CRASH_DIARY"
	envServe   = "DAYBOOK_CRASH_SERVE"  // which of several processes
	envGate    = "DAYBOOK_CRASH_GATE"   // where work is stopped
	envBinary  = "DAYBOOK_CRASH_BINARY" // the binary under test
	envFar     = "DAYBOOK_CRASH_FAR"    // the services outside, with the gate between
)

// Exit codes of work.
const (
	exitDone      = 0
	exitUnclear   = 1
	exitPermanent = 65
	exitNotDone   = 75
)

// entry is one line of the diary: a command began, or ended and said how.
type entry struct {
	At    time.Time `json:"at"`
	What  string    `json:"what"` // begin, end, asked
	Pid   int       `json:"pid"`
	Job   string    `json:"job"`
	Key   string    `json:"key"`
	Fence int64     `json:"fence"`
	Wire  string    `json:"wire,omitempty"`
	Serve string    `json:"serve,omitempty"` // the process that started it, where there are several
	Said  int       `json:"said"`            // exit code
}

func write(what string, said int) {
	fence, _ := strconv.ParseInt(os.Getenv("DAYBOOK_FENCE"), 10, 64)
	writeEntry(entry{At: time.Now().UTC(), What: what, Pid: os.Getpid(), Job: os.Getenv("DAYBOOK_JOB"), Key: os.Getenv("DAYBOOK_KEY"),
		Fence: fence, Wire: os.Getenv("DAYBOOK_WIRE_KEY"), Serve: os.Getenv(envServe), Said: said})
}

func writeEntry(e entry) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	f, err := os.OpenFile(os.Getenv(envDiary), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	if _, err := f.Write(append(line, '\n')); err != nil { // one write: lines of others never come between
		panic(err)
	}
	if err := f.Close(); err != nil {
		panic(err)
	}
}

// readDiary returns the whole lines of a diary.
func readDiary(path string) ([]entry, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []entry
	for line := range strings.Lines(string(b)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, fmt.Errorf("diary: %q: %w", line, err)
		}
		list = append(list, e)
	}
	return list, nil
}

// helper is this program as something else.
func helper(args []string) int {
	switch args[0] {
	case "gateway":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		go func() { // it ends with the test, however that ends
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
		if err := gateway.Main(ctx, args[1:], nil, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	case "ask":
		return ask(os.Getenv(envGateway) + "/charges")
	case "ask-far":
		return askFar()
	case "far":
		return farStep(args[1])
	case "service":
		return new(service).serve(args[1])
	case "fan":
		return fanApp()
	case "app":
		return app()
	case "book":
		return book(args[1])
	case "book-undo":
		return bookUndo()
	case "ask-book":
		return askBook()
	}
	write("begin", 0)
	code := work(args[0], args[1:])
	write("end", code)
	return code
}

func work(what string, args []string) int {
	switch what {
	case "renew":
		return renewal(args[0])
	case "idle": // idle MIN MAX: takes a while
		pauseBetween(args[0], args[1])
		return exitDone
	case "charge": // charge BEFORE AFTER: charges somewhere in between
		pauseBetween("0s", args[0])
		code := charge()
		pauseBetween("0s", args[1])
		// Half of the work says in words how it ended: that survives the daybook that started it.
		if code == exitDone && random().IntN(2) == 0 {
			report(`{"outcome":"done","effects":{"charges":1}}`)
		}
		return code
	case "charge-hang": // charges and does not come back the first time
		hang := first(os.Getenv("DAYBOOK_KEY")) // before the charge: once that is booked, the end may come at any instant
		code := charge()
		if hang {
			await()
		}
		return code
	case "hang-first": // does not come back for the first key that comes by
		if only(os.Getenv("DAYBOOK_KEY")) {
			await()
		}
		return exitDone
	case "report-later": // report-later TIME OUTCOME
		pauseBetween(args[0], args[0])
		if args[1] != "" {
			report(`{"outcome":"` + args[1] + `","message":"by the result file"}`)
		}
		return exitDone
	case "tidy": // asked to end, it takes a while to tidy up, and says that it is not done
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		write("ready", 0)
		<-asked
		write("asked to end", 0)
		pauseBetween(args[0], args[0])
		write("tidied", 0)
		return exitNotDone
	case "stubborn": // asked to end, it does not
		signal.Ignore(syscall.SIGTERM)
		write("ready", 0)
		await()
	case "kill-parent":
		parent := os.Getppid()
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", parent)); err == nil && filepath.Base(exe) == "daybook" { // it may be gone already
			_ = syscall.Kill(parent, syscall.SIGKILL)
		}
		return exitDone
	}
	panic("no such helper: " + what)
}

// random decides anew for each attempt, and the same for the same attempt.
func random() *rand.Rand {
	h := uint64(14695981039346656037)
	for _, c := range os.Getenv("DAYBOOK_KEY") + os.Getenv("DAYBOOK_FENCE") {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(h, 1))
}

func pauseBetween(from, to string) {
	a, err1 := time.ParseDuration(from)
	b, err2 := time.ParseDuration(to)
	if err := errors.Join(err1, err2); err != nil {
		panic(err)
	}
	<-time.After(a + time.Duration(random().Float64()*float64(b-a)))
}

// await waits for the end that somebody else will bring, or for the test's.
func await() { <-time.After(2 * time.Minute) }

// first reports whether this is the first call with a text, over all processes.
func first(text string) bool {
	f, err := os.OpenFile(os.Getenv(envDiary)+"."+strings.NewReplacer(":", "_", "/", "_").Replace(text), os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_ = f.Close()
	}
	return err == nil
}

// only reports whether text is the one that came first of all. Whoever is killed in the middle of it has decided either
// all or nothing.
func only(text string) bool {
	path := os.Getenv(envDiary) + ".only"
	own := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
		panic(err)
	}
	_ = os.Link(own, path) // fails for all but the first
	b, err := os.ReadFile(path)
	return err == nil && string(b) == text
}

// report writes the result file whole.
func report(text string) {
	path := os.Getenv("DAYBOOK_RESULT_FILE")
	temp := filepath.Join(filepath.Dir(path), "result.new")
	if err := errors.Join(os.WriteFile(temp, []byte(text+"\n"), 0o600), os.Rename(temp, path)); err != nil {
		panic(err)
	}
}

var client = &http.Client{Timeout: 25 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// charge charges the job, as a customer, for the window, as a day, and says what a careful program would say of the
// answer.
func charge() int {
	body := fmt.Sprintf(`{"customer":%q,"day":%q,"amount":1500,"currency":"EUR"}`, os.Getenv("DAYBOOK_JOB"), os.Getenv("DAYBOOK_WINDOW"))
	r, err := http.NewRequest(http.MethodPost, os.Getenv(envGateway)+"/charges", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Idempotency-Key", os.Getenv("DAYBOOK_WIRE_KEY"))
	answer, err := client.Do(r)
	if err != nil {
		return exitUnclear
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		return exitDone
	case http.StatusServiceUnavailable:
		return exitNotDone
	case http.StatusPaymentRequired:
		return exitPermanent
	}
	return exitUnclear
}

// ask is the probe: 0 yes, 1 no, else it cannot tell.
func ask(url string) int {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	q := r.URL.Query()
	q.Set("key", os.Getenv("DAYBOOK_WIRE_KEY"))
	r.URL.RawQuery = q.Encode()
	r.Header.Set(callerPid, strconv.Itoa(os.Getpid()))
	answer, err := client.Do(r)
	if err != nil {
		return 2
	}
	_, _ = io.Copy(os.Stdout, answer.Body)
	_ = answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		write("asked", 0)
		return 0
	case http.StatusNotFound:
		write("asked", 1)
		return 1
	}
	return 2
}
