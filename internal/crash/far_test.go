package crash

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// farStep is the command of a step whose services outside are reached through a gate: charge, undo, extend, mail, sorry. It can be
// stopped when it has begun and when it has its answer, and the answer can be stopped on its way.
func farStep(what string) int {
	pass(what + "-begun")
	code := farCall(what)
	pass(what + "-answered")
	return code
}

func farCall(what string) int {
	job, day, _ := strings.Cut(os.Getenv("DAYBOOK_KEY"), ":")
	switch what {
	case "charge":
		return post(os.Getenv(envFar)+"/charges", fmt.Sprintf(`{"customer":%q,"day":%q,"amount":1500,"currency":"EUR"}`, job, day))
	case "undo":
		id, err := chargeOf(os.Getenv("DAYBOOK_EFFECT_KEY"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return exitUnclear
		}
		return post(os.Getenv(envFar)+"/refunds", fmt.Sprintf(`{"charge":%q}`, id))
	case "extend":
		write("extended", 0)
		return exitDone
	case "mail":
		return post(os.Getenv(envFar)+"/mails", "")
	case "sorry":
		return post(os.Getenv(envFar)+"/sorry", "")
	}
	panic("no such service: " + what)
}

// post asks for something under the wire key, prints what is said, and ends as a careful program would.
func post(url, body string) int {
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Idempotency-Key", os.Getenv("DAYBOOK_WIRE_KEY"))
	r.Header.Set(callerPid, strconv.Itoa(os.Getpid()))
	answer, err := client.Do(r)
	if err != nil {
		return exitUnclear
	}
	defer answer.Body.Close()
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
		return exitUnclear
	}
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

// chargeOf is the gateway's id of what was charged under a wire key.
func chargeOf(wireKey string) (string, error) {
	answer, err := client.Get(os.Getenv(envGateway) + "/charges?key=" + url.QueryEscape(wireKey))
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var c struct{ ID string }
	if err := json.NewDecoder(answer.Body).Decode(&c); err != nil || c.ID == "" {
		return "", fmt.Errorf("no charge under %s: %s, %v", wireKey, answer.Status, err)
	}
	return c.ID, nil
}

// askFar is the probe, of charges and of refunds. About mail nobody can tell.
func askFar() int {
	wireKey := os.Getenv("DAYBOOK_WIRE_KEY")
	switch {
	case !strings.Contains(wireKey, "#charge"):
		return 2
	case strings.Contains(wireKey, "~undo"):
		return ask(os.Getenv(envFar) + "/refunds")
	}
	return ask(os.Getenv(envFar) + "/charges")
}
