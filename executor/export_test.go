package executor

// AtWork returns how many attempts and questions have not ended.
func (x *Executor) AtWork() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.atWork
}
