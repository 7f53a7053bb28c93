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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	a := &app{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Now: time.Now, LookupEnv: os.LookupEnv, ReadFile: os.ReadFile, LocalZone: machineZone,
	}
	code := a.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
