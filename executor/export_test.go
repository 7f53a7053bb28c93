package executor

import "time"

// AtWork returns how many attempts and questions have not ended.
func (x *Executor) AtWork() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.atWork
}

// Patient sets how long what was killed with its attempt may take to be gone.
func (x *Executor) Patient(d time.Duration) { x.patient = d }
