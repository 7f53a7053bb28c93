package main

import (
	"context"
	"time"
)

var planning = scenario{
	Name:  "plan",
	Title: text{"Many jobs due in one minute", "同一分钟到期的许多任务"},
	What: text{
		"Jobs, each with a schedule of its own, become due in the same minute: each gets its run and the record of its fire, durably. Schedulers that keep nothing are faster, and know nothing after a restart. The bare loop inserts as many rows.",
		"许多各有日程的任务在同一分钟到期：每个都持久得到它的运行和触发记录。什么都不保留的调度器更快，重启后也一无所知。裸循环插入同样多的行。",
	},
	Measures: []measure{
		{Name: "loaded", Unit: "/s", What: text{"jobs made known", "登记任务"}},
		{Name: "planned", Unit: "/s", What: text{"jobs planned", "计划任务"}},
	},
	run:    plan,
	rounds: 2,
}

// planner is a peer with schedules.
type planner interface {
	// load makes so many jobs known that are due at an instant, and due plans them.
	load(ctx context.Context, n int, at time.Time) error
	due(ctx context.Context, at time.Time) error
}

func plan(ctx context.Context, p peer, t terms) ([]figure, error) {
	if err := p.reset(ctx); err != nil {
		return nil, err
	}
	n := pick(t, 100_000, 10_000, 100)
	if isBareStore(p) {
		began := time.Now()
		err := p.fill(ctx, noop, n)
		return []figure{{"planned", float64(n) / time.Since(began).Seconds()}}, err
	}
	s, ok := p.(planner)
	if !ok {
		return nil, cannot("is no scheduler, or keeps its schedule in memory")
	}
	at := time.Now().Truncate(time.Minute)
	began := time.Now()
	if err := s.load(ctx, n, at); err != nil {
		return nil, err
	}
	loaded := time.Since(began)
	began = time.Now()
	err := s.due(ctx, at)
	return []figure{{"loaded", float64(n) / loaded.Seconds()}, {"planned", float64(n) / time.Since(began).Seconds()}}, err
}

func isBareStore(p peer) bool {
	_, is := p.(*bare)
	return is
}
