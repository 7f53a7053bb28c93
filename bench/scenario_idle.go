package main

import (
	"context"
	"time"
)

var idling = scenario{
	Name:  "idle",
	Title: text{"Doing nothing", "空闲"},
	What: text{
		"Workers wait, and nobody asks for anything. Settings are those of all other scenarios: who polls often to start soon pays for it here. The processor time is that of the program and of the servers, whose own is in all of them.",
		"工作者等待，无人提交。设置与其他场景相同：为了尽快开始而频繁轮询者，在这里付出代价。处理器时间包括程序与各服务器本身。",
	},
	Measures: []measure{
		{Name: "statements", Unit: "/s", Less: true, What: text{"statements", "语句"}},
		{Name: "core", Unit: "%", Less: true, What: text{"of a core", "占一个核"}},
	},
	run:    idle,
	rounds: 2,
}

func idle(ctx context.Context, p peer, t terms) (figures []figure, err error) {
	if err := p.reset(ctx); err != nil {
		return nil, err
	}
	if p.about().Store == onPostgres {
		if err := t.place.counting(ctx, "top"); err != nil {
			return nil, err
		}
		defer func() { err = firstOf(err, t.place.counting(ctx, "none")) }()
	}
	stop, err := p.start(ctx, noop, func(time.Time) {})
	if err != nil {
		return nil, err
	}
	defer func() { err = firstOf(err, stop()) }()
	settle(ctx, pick(t, 3*time.Second, 2*time.Second, 100*time.Millisecond))
	asked, err := countsOf(ctx, t, p)
	if err != nil {
		return nil, err
	}
	before := loadNow()
	settle(ctx, pick(t, 20*time.Second, 8*time.Second, 200*time.Millisecond))
	took, used := time.Since(before.at).Seconds(), before.ours()
	now, err := countsOf(ctx, t, p)
	if err != nil {
		return nil, err
	}
	if d := now.since(asked); d.statements >= 0 {
		figures = append(figures, figure{"statements", d.statements / took})
	}
	return append(figures, figure{"core", 100 * used / took}), nil
}

func settle(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
