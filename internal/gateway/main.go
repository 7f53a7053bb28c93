package gateway

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Main runs the gateway as a process of its own, by a clock (nil: time.Now), until ctx is done. It says on out where it
// listens, in one line:
//
//	listening on http://127.0.0.1:41213
func Main(ctx context.Context, args []string, now func() time.Time, out io.Writer) error {
	flags := flag.NewFlagSet("demo-gateway", flag.ContinueOnError)
	flags.SetOutput(out)
	addr := flags.String("addr", "127.0.0.1:0", "address to listen on")
	book := flags.String("book", "gateway.jsonl", "file of the book")
	forget := flags.Duration("forget", forgetDefault, "how long answers are saved under their key")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("demo-gateway takes no arguments, got %q", flags.Args())
	}
	g, err := New(Options{Book: *book, Forget: *forget, Now: now})
	if err != nil {
		return err
	}
	defer g.Close()
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	fmt.Fprintf(out, "listening on http://%s\n", l.Addr())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		// Callers in mid-request are cut off, as by a crash: that is what they are there to survive.
		return s.Close()
	}
}
