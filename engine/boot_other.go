//go:build !linux

package engine

import "time"

var started = time.Now()

// sinceBoot is the time since this process started: as good as the time since boot for telling leaps while it runs.
func sinceBoot() time.Duration { return time.Since(started) }
