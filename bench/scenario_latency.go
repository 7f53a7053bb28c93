package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

var waiting = scenario{
	Name:  "latency",
	Title: text{"From asking to starting", "从提交到开始"},
	What: text{
		"Workers wait. One caller asks for 50 pieces of work a second. The time is from before the call to the first line of the work. On PostgreSQL the caller is another node than the worker, which is called by the database; on SQLite they are one process.",
		"工作者等待中，一个调用方每秒提交 50 个任务。计时从调用之前到任务的第一行。在 PostgreSQL 上调用方与工作者是不同节点，由数据库通知；在 SQLite 上是同一进程。",
	},
	Measures: []measure{
		{Name: "p50", Unit: "ms", Less: true, What: text{"half of them start within", "半数在此时间内开始"}},
		{Name: "p99", Unit: "ms", Less: true, What: text{"99 of 100 start within", "百分之九十九在此时间内开始"}},
	},
	run:    latency,
	rounds: 3,
}

const perSecond = 50

func latency(ctx context.Context, p peer, t terms) (_ []figure, err error) {
	if err := p.reset(ctx); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var took []time.Duration
	stop, err := p.start(ctx, noop, func(began time.Time) {
		d := time.Since(began)
		mu.Lock()
		defer mu.Unlock()
		took = append(took, d)
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = firstOf(err, stop()) }()
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(took)
	}
	const warm = perSecond // a second of it
	n := warm + int(pick(t, 12*time.Second, 5*time.Second, 200*time.Millisecond).Seconds()*perSecond)
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	for range n {
		<-tick.C
		if err := p.insert(ctx, noop, time.Now()); err != nil {
			return nil, err
		}
	}
	for end := time.Now().Add(10 * time.Second); count() < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return nil, fmt.Errorf("%d of %d have started", count(), n)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	ms := millis(took[warm:])
	return []figure{{"p50", quantile(ms, 0.5)}, {"p99", quantile(ms, 0.99)}}, nil
}
