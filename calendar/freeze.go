package calendar

import (
	"time"

	"github.com/daybook-run/daybook"
)

// Freezes are those of a file. Nil: there are none.
type Freezes struct {
	rules []freezeRule
}

type freezeRule struct {
	daybook.FreezeRule
	schedule *Schedule
}

// CompileFreezes reads freezes, whose schedules are in a zone. Errors have CodeInvalid, and say of which freeze.
func CompileFreezes(rules []daybook.FreezeRule, zone string) (*Freezes, error) {
	f := &Freezes{}
	for _, r := range rules {
		s, err := CompileFreeze(r, zone)
		if err != nil {
			return nil, daybook.Invalid("freeze %s", r.Name).Because(err)
		}
		f.rules = append(f.rules, freezeRule{r, s})
	}
	return f, nil
}

// CompileFreeze reads one freeze. Errors have CodeInvalid.
func CompileFreeze(r daybook.FreezeRule, zone string) (*Schedule, error) {
	if r.For <= 0 || r.For > daybook.MaxFreeze {
		return nil, daybook.Invalid("a freeze of %s is outside 1s to 24h", r.For).WithHint("a freeze has an end, within a day: such as for: 30m")
	}
	if r.Schedule == "" {
		return nil, daybook.Invalid("a freeze has no schedule").WithHint("such as schedule: \"0 14 * * 1-5\"; one that begins now: daybook freeze start --for 30m --reason …")
	}
	s, err := Compile(Spec{Schedule: r.Schedule, Zone: zone, Window: daybook.PerFire})
	if err != nil {
		return nil, err
	}
	if shortest := s.Distance(); shortest > 0 && shortest <= r.For {
		return nil, daybook.Invalid("a freeze of %s comes every %s: it would never end", r.For, shortest).WithHint("make it shorter, or let it come less often")
	}
	return s, nil
}

// At returns the freezes that hold something at an instant.
func (f *Freezes) At(at time.Time) []daybook.Freeze {
	return f.Between(at, at)
}

// Between returns the freezes that begin at or before one instant and end after another.
func (f *Freezes) Between(ends, begins time.Time) []daybook.Freeze {
	var list []daybook.Freeze
	if f == nil {
		return nil
	}
	for _, r := range f.rules {
		for fire := range r.schedule.Between(ends.Add(-r.For), begins) {
			list = append(list, r.from(fire.At))
		}
	}
	return list
}

// Next returns each freeze as it stands at an instant, or else as it comes next.
func (f *Freezes) Next(at time.Time) []daybook.Freeze {
	var list []daybook.Freeze
	if f == nil {
		return nil
	}
	for _, r := range f.rules {
		if fire, ok := r.schedule.Next(at.Add(-r.For)); ok {
			list = append(list, r.from(fire.At))
		}
	}
	return list
}

// Names returns the names of the freezes.
func (f *Freezes) Names() []string {
	var names []string
	if f != nil {
		for _, r := range f.rules {
			names = append(names, r.Name)
		}
	}
	return names
}

func (r freezeRule) from(at time.Time) daybook.Freeze {
	return daybook.Freeze{Name: r.Name, Only: r.Only, From: at, Until: at.Add(r.For), OfFile: true}
}
