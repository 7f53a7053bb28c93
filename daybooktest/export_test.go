package daybooktest

// Lose lets the worker of e be lost where it stands: it writes nothing more.
func Lose(e *Engine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kill()
}
