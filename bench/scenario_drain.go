package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

var draining = scenario{
	Name:  "drain",
	Title: text{"Many at once, and through", "批量写入并清空"},
	What: text{
		"Work that may be repeated and does nothing is put in, in the fastest way there is; then workers start, and the clock stops when the store says that none is left: claimed, done, and recorded durably.",
		"以最快方式写入一批可重复、什么也不做的任务；然后启动工作者，直到存储报告一个不剩：已领取、已完成，且已持久记录。",
	},
	Measures: []measure{
		{Name: "fill", Unit: "/s", What: text{"put in", "写入"}},
		{Name: "drain", Unit: "/s", What: text{"claimed and done", "领取并完成"}},
	},
	run: func(ctx context.Context, p peer, t terms) ([]figure, error) {
		return fillAndDrain(ctx, p, noop, t.n(p, 50_000, 20_000, 200), t)
	},
	warm: true,
}

func fillAndDrain(ctx context.Context, p peer, w work, n int, t terms) ([]figure, error) {
	if err := p.reset(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := p.fill(ctx, w, n); err != nil {
		return nil, err
	}
	filled := float64(n) / time.Since(began).Seconds()
	rate, err := drain(ctx, p, w, n, t)
	return []figure{{"fill", filled}, {"drain", rate}}, err
}

// drain starts workers on n pieces of work and returns how many of them they finish in a second.
func drain(ctx context.Context, p peer, w work, n int, t terms) (rate float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, pick(t, 2*time.Minute, time.Minute, time.Minute))
	defer cancel()
	var begun atomic.Int64
	began := time.Now()
	stop, err := p.start(ctx, w, func(time.Time) { begun.Add(1) })
	if err != nil {
		return 0, err
	}
	defer func() { err = firstOf(err, stop()) }()
	for left := n; left > 0; {
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%d of %d are left after %s", left, n, time.Since(began).Round(time.Second))
		case <-time.After(2 * time.Millisecond):
		}
		if begun.Load() < int64(n) { // until then the store is left in peace
			continue
		}
		if left, err = p.left(ctx); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}
