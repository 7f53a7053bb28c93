package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

var inserting = scenario{
	Name:  "insert",
	Title: text{"Asking for work, one piece at a time", "逐个提交任务"},
	What: text{
		"Callers ask for one piece of work after the other. Each call returns when its work survives a power cut. Nobody works meanwhile. For Daybook it is a trigger: the key is looked up, decided about and answered, with a record of who asked.",
		"调用方逐个提交任务；每次调用返回时，任务已能经受断电。期间没有工作者运行。对 Daybook 而言这是一次触发：查键、判定、应答，并记录是谁要求的。",
	},
	Measures: []measure{
		{Name: "1 caller", Unit: "/s", What: text{"one caller", "1 个调用方"}},
		{Name: "16 callers", Unit: "/s", What: text{"16 callers at once", "16 个调用方同时"}},
	},
	run:  insertAlone,
	warm: true,
}

func insertAlone(ctx context.Context, p peer, t terms) ([]figure, error) {
	var figures []figure
	for _, callers := range []int{1, 16} {
		if err := p.reset(ctx); err != nil {
			return nil, err
		}
		n, took, err := askFor(ctx, p, callers, pick(t, 3*time.Second, 2*time.Second, 100*time.Millisecond))
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("%d callers", callers)
		if callers == 1 {
			name = "1 caller"
		}
		figures = append(figures, figure{name, float64(n) / took.Seconds()})
	}
	return figures, nil
}

// askFor lets so many callers ask for work as fast as they are answered, for a while.
func askFor(ctx context.Context, p peer, callers int, length time.Duration) (n int64, took time.Duration, err error) {
	var asked atomic.Int64
	errs := make(chan error, callers)
	began := time.Now()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for time.Since(began) < length {
				if err := p.insert(ctx, noop, time.Now()); err != nil {
					errs <- err
					return
				}
				asked.Add(1)
			}
		})
	}
	all.Wait()
	took = time.Since(began)
	close(errs)
	return asked.Load(), took, <-errs
}
