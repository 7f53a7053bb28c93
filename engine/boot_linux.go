package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is the time since the machine started, suspend included (CLOCK_BOOTTIME).
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return time.Since(started)
	}
	return time.Duration(ts.Nano())
}

var started = time.Now()
