package main

import (
	"context"
	"runtime"
)

var costing = scenario{
	Name:  "cost",
	Title: text{"What one piece of work costs", "一个任务的代价"},
	What: text{
		"Many pieces of work are done, and what that took is divided by their number: processor time, of which a busy machine takes nothing away; statements that the store saw, BEGIN and COMMIT included; bytes in its log; allocations of the Go program. First work that may be repeated, which is taken in batches; then work that may be done once only, with its effect.",
		"完成大量任务后，把所耗除以个数：处理器时间（机器再忙也不受影响）、存储收到的语句数（含 BEGIN 与 COMMIT）、写入日志的字节、Go 程序的内存分配。先是可重复的任务（成批处理），再是只能做一次、带作用的任务。",
	},
	Measures: []measure{
		{Name: "processor", Unit: "µs", Less: true, What: text{"processor time, the store's included, repeatable", "处理器时间（含存储），可重复"}},
		{Name: "statements", Unit: "", Less: true, What: text{"statements, repeatable", "语句数，可重复"}},
		{Name: "bytes", Unit: "B", Less: true, What: text{"bytes of log, repeatable", "日志字节，可重复"}},
		{Name: "allocations", Unit: "", Less: true, What: text{"allocations, repeatable", "分配次数，可重复"}},
		{Name: "once processor", Unit: "µs", Less: true, What: text{"processor time, once only", "处理器时间，只做一次"}},
		{Name: "once statements", Unit: "", Less: true, What: text{"statements, once only", "语句数，只做一次"}},
		{Name: "once bytes", Unit: "B", Less: true, What: text{"bytes of log, once only", "日志字节，只做一次"}},
		{Name: "once allocations", Unit: "", Less: true, What: text{"allocations, once only", "分配次数，只做一次"}},
	},
	run:    cost,
	warm:   true,
	rounds: 2,
}

func cost(ctx context.Context, p peer, t terms) (figures []figure, err error) {
	if p.about().Store == onPostgres {
		if err := t.place.counting(ctx, "top"); err != nil {
			return nil, err
		}
		defer func() { err = firstOf(err, t.place.counting(ctx, "none")) }()
	}
	for _, w := range []work{noop, once} {
		f, err := costOf(ctx, p, w, t)
		if isCannot(err) && len(figures) > 0 {
			return figures, nil
		}
		if err != nil {
			return nil, err
		}
		figures = append(figures, f...)
	}
	return figures, nil
}

func costOf(ctx context.Context, p peer, w work, t terms) ([]figure, error) {
	n := t.n(p, 5_000, 3_000, 100)
	if err := p.reset(ctx); err != nil {
		return nil, err
	}
	if err := p.fill(ctx, w, n); err != nil {
		return nil, err
	}
	var before, after runtime.MemStats
	asked, err := countsOf(ctx, t, p)
	if err != nil {
		return nil, err
	}
	runtime.ReadMemStats(&before)
	busy := loadNow()
	if _, err := drain(ctx, p, w, n, t); err != nil {
		return nil, err
	}
	used := busy.ours()
	runtime.ReadMemStats(&after)
	now, err := countsOf(ctx, t, p)
	if err != nil {
		return nil, err
	}
	name := ""
	if w.Kind == once.Kind {
		name = "once "
	}
	d := now.since(asked)
	figures := []figure{{name + "processor", used * 1e6 / float64(n)}, {name + "bytes", d.bytes / float64(n)}}
	if p.about().InProcess {
		figures = append(figures, figure{name + "allocations", float64(after.Mallocs-before.Mallocs) / float64(n)})
	}
	if d.statements >= 0 {
		figures = append(figures, figure{name + "statements", d.statements / float64(n)})
	}
	return figures, nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
