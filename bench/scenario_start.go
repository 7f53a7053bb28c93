package main

import (
	"context"
	"fmt"
	"time"
)

var starting = scenario{
	Name:  "start",
	Title: text{"From start to the first piece of work", "从启动到第一个任务"},
	What: text{
		"The store is there and has one piece of work. A worker is opened and started, connections included; the time is until that work starts. For graphile-worker the start of Node.js is in it.",
		"存储已就绪，里面有一个任务。打开并启动一个工作者（含建立连接），计时到该任务开始。graphile-worker 包括 Node.js 的启动。",
	},
	Measures: []measure{{Name: "first", Unit: "ms", Less: true, What: text{"first piece of work starts within", "第一个任务开始"}}},
	run:      startUp,
	warm:     true,
}

func startUp(ctx context.Context, p peer, _ terms) (_ []figure, err error) {
	if err := p.reset(ctx); err != nil {
		return nil, err
	}
	if err := p.insert(ctx, noop, time.Now()); err != nil {
		return nil, err
	}
	first := make(chan time.Time, 1)
	began := time.Now()
	stop, err := p.start(ctx, noop, func(time.Time) {
		select {
		case first <- time.Now():
		default:
		}
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = firstOf(err, stop()) }()
	select {
	case at := <-first:
		return []figure{{"first", float64(at.Sub(began).Microseconds()) / 1000}}, nil
	case <-time.After(10 * time.Second):
		return nil, fmt.Errorf("nothing started within 10 s")
	}
}
