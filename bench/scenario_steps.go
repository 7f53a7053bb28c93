package main

import "context"

var stepping = scenario{
	Name:  "steps",
	Title: text{"Work in ten steps", "十步的工作"},
	What: text{
		"100 pieces of work at once, of ten steps each. A plain step is recorded when it is done; an effect is marked before it begins as well, so that nobody repeats it blindly.",
		"同时 100 个任务，每个十步。普通步骤完成时记录；作用（effect）在开始之前也要标记，因此不会被盲目重复。",
	},
	Measures: []measure{
		{Name: "steps", Unit: "/s", What: text{"plain steps", "普通步骤"}},
		{Name: "effects", Unit: "/s", What: text{"effects", "作用"}},
	},
	run:  stepped,
	warm: true,
}

// stepped has both kinds of steps done. A peer that has one of them only is measured by that one.
func stepped(ctx context.Context, p peer, t terms) (figures []figure, err error) {
	for _, w := range []work{steps, effects} {
		var f []figure
		if f, err = fillAndDrain(ctx, p, w, t.n(p, 1_000, 500, 20), t); err != nil {
			if isCannot(err) && len(figures) > 0 {
				return figures, nil
			}
			return nil, err
		}
		figures = append(figures, figure{w.Kind, f[1].Value * float64(w.Steps)})
	}
	return figures, nil
}
