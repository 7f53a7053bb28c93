package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/gateway"
)

// newDemoGateway is the payment service of the demo, as a process of its own.
func newDemoGateway(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "demo-gateway", Short: textDemoGateway, Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error { return gateway.Main(cmd.Context(), args, a.Stdout) },
	}
}

// demoCharge is the work of the demo's job, and its probe.
type demoCharge struct {
	gateway, customer, day string
	ask, die               bool
}

func newDemoCharge(a *app) *cobra.Command {
	var o demoCharge
	cmd := &cobra.Command{
		Use: "demo-charge", Short: textDemoCharge, Hidden: true, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if code := a.demoCharge(cmd.Context(), o); code != 0 {
				return &coded{code: code, err: fmt.Errorf("exit %d", code), silent: true}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.gateway, "gateway", "", "address of the gateway")
	f.StringVar(&o.customer, "customer", "", "who is charged")
	f.StringVar(&o.day, "day", "", "for which day")
	f.BoolVar(&o.ask, "ask", false, "ask whether it was charged: exit 0 yes, 1 no, else it cannot tell")
	f.BoolVar(&o.die, "die-with-parent", false, "end, without a word, as soon as the process that started it has ended")
	return cmd
}

// Exit codes by which a command says how it ended; see textOnceLong and the documentation of run.
const (
	exitNotDone   = 75
	exitPermanent = 65
	exitUnclear   = 1
	exitAskNo     = 1
	exitAskUnsure = 2
)

// demoCharge charges a customer under the wire key of the attempt, or asks about it, as a program of a shop would, and
// returns its exit code.
func (a *app) demoCharge(ctx context.Context, o demoCharge) int {
	if o.die {
		var stop context.CancelFunc
		ctx, stop = whileParentLives(ctx)
		defer stop()
	}
	key, _ := a.LookupEnv("DAYBOOK_WIRE_KEY")
	method, target, body := http.MethodPost, o.gateway+"/charges", fmt.Sprintf(`{"customer":%q,"day":%q,"amount":1500,"currency":"EUR"}`, o.customer, o.day)
	if o.ask {
		method, target, body = http.MethodGet, o.gateway+"/charges?key="+url.QueryEscape(key), ""
	}
	r, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	if err != nil {
		fmt.Fprintln(a.Stderr, err)
		return exitAskUnsure
	}
	if key != "" && !o.ask {
		r.Header.Set("Idempotency-Key", key)
	}
	answer, err := demoClient.Do(r)
	if err != nil {
		fmt.Fprintln(a.Stderr, err)
		return exitAskUnsure
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, daybook.MaxResultBytes)) // the status tells; the rest is for people
	var refused struct{ Error struct{ Message string } }
	if json.Unmarshal(said, &refused) == nil && refused.Error.Message != "" {
		said = []byte(answer.Status + ": " + refused.Error.Message)
	}
	fmt.Fprintf(a.Stdout, "%s\n", strings.TrimSpace(string(said)))
	switch {
	case answer.StatusCode == http.StatusOK:
		return 0
	case o.ask && answer.StatusCode == http.StatusNotFound:
		return exitAskNo
	case o.ask:
		return exitAskUnsure
	case answer.StatusCode == http.StatusPaymentRequired:
		return exitPermanent
	case answer.StatusCode == http.StatusServiceUnavailable:
		return exitNotDone
	}
	return exitUnclear
}

// whileParentLives returns a context that ends when the parent process has: the demo kills a process with all that it
// started, as the end of a machine or a container would.
func whileParentLives(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	parent := os.Getppid()
	go func() {
		defer stop()
		_, _ = waitWhile(ctx, 50*time.Millisecond, func() (bool, error) { return os.Getppid() == parent, nil })
	}()
	return ctx, stop
}
