package sim

import "time"

// The clock of a bubble: it stands still while anything runs, and leaps to the next timer when everything waits.

func now() time.Time { return time.Now() }

func sleep(d time.Duration) { time.Sleep(d) }
