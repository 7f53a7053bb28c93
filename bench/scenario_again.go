package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

var asking = scenario{
	Name:  "again",
	Title: text{"Asking again for what is done", "再次要求已完成的工作"},
	What: text{
		"Work that is done is asked for again by its key. Daybook answers from the row, and records that it was asked, by whom; reading does not record. The bare loop selects one row by its key, and writes nothing.",
		"按键再次要求已完成的工作。Daybook 从该行作答，并记录谁要求过；只读则不记录。裸循环按键查一行，不写任何东西。",
	},
	Measures: []measure{
		{Name: "read", Unit: "/s", What: text{"read, one caller", "读取，1 个调用方"}},
		{Name: "asked", Unit: "/s", What: text{"asked for, 16 callers", "要求，16 个调用方"}},
	},
	run:  again,
	warm: true,
}

// rememberer is a peer that answers for work that is done, by its key.
type rememberer interface {
	// read looks the nth piece of work up that was inserted.
	read(ctx context.Context, n int) error
	// again asks for it once more.
	again(ctx context.Context, n int) error
}

func again(ctx context.Context, p peer, t terms) ([]figure, error) {
	r, ok := p.(rememberer)
	if !ok {
		return nil, cannot("knows a key of its caller's for a time at most, where that is asked for")
	}
	if err := p.reset(ctx); err != nil {
		return nil, err
	}
	n := pick(t, 2000, 500, 50)
	if err := fillOneByOne(ctx, p, noop, n, 16); err != nil {
		return nil, err
	}
	if _, err := drain(ctx, p, noop, n, t); err != nil {
		return nil, err
	}
	length := pick(t, 3*time.Second, 2*time.Second, 100*time.Millisecond)
	read, err := asOftenAsCan(ctx, 1, n, length, r.read)
	if err != nil {
		return nil, err
	}
	asked, err := asOftenAsCan(ctx, 16, n, length, r.again)
	return []figure{{"read", read}, {"asked", asked}}, err
}

// asOftenAsCan lets so many callers do something with pieces 1 to n, over and over, and returns how often a second they did.
func asOftenAsCan(ctx context.Context, callers, n int, length time.Duration, do func(ctx context.Context, n int) error) (float64, error) {
	var done atomic.Int64
	errs := make(chan error, callers)
	began := time.Now()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for time.Since(began) < length {
				if err := do(ctx, int(done.Add(1))%n+1); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	close(errs)
	return float64(done.Load()) / took.Seconds(), <-errs
}
