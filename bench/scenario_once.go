package main

import "context"

var onceOnly = scenario{
	Name:  "once",
	Title: text{"Work that may be done once only", "只能做一次的工作"},
	What: text{
		"As before, but each piece has one effect that must not be repeated blindly, and 100 run at once: that it begins is on the disk before it begins, and that it is done after. DBOS's nearest is a workflow of one step, which is recorded when it is done and repeated when it was not.",
		"同上，但每个任务有一个不得盲目重复的作用，同时运行 100 个：开始之前先把“已开始”落盘，完成后再落盘“已完成”。DBOS 最接近的是单步工作流：完成后才记录，未记录则重做。",
	},
	Measures: []measure{{Name: "drain", Unit: "/s", What: text{"done", "完成"}}},
	run: func(ctx context.Context, p peer, t terms) ([]figure, error) {
		figures, err := fillAndDrain(ctx, p, once, t.n(p, 10_000, 3_000, 100), t)
		if err != nil {
			return nil, err
		}
		return figures[1:], nil
	},
	warm: true,
}
