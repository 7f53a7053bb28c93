// Command daybook is cron that knows which day it is for, and will not do that day twice.
//
// Each command is one file, listed in commands.go. Parsing stands apart from doing: what touches the machine (streams,
// clock, environment, files) is a field of app, so that tests run commands in their own process.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	a := &app{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Now: time.Now, LookupEnv: os.LookupEnv, ReadFile: os.ReadFile, LocalZone: machineZone,
		Width: terminalWidth, Ask: somebody,
	}
	code := a.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// terminalWidth returns the columns of the terminal that stdout is, 0 when it is none.
func terminalWidth() int {
	fd := int(os.Stdout.Fd())
	if !term.IsTerminal(fd) {
		return 0
	}
	w, _, err := term.GetSize(fd)
	if err != nil {
		return 0
	}
	return w
}

// somebody reports whether a question would be seen and could be answered.
func somebody() bool {
	return term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd()))
}
