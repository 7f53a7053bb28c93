package daybooktest

import "time"

// SetClock moves the clock of e while it works.
func SetClock(e *Engine, at time.Time) { e.set(at) }

// Lose lets the worker of e be lost where it stands: it writes nothing more.
func Lose(e *Engine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kill()
}
