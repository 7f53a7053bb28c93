package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/daybook-run/daybook"
)

// oldestLocks is how many serial keys are looked at in one Tick, those that are held longest first.
const oldestLocks = 200

// stuck alerts, once, of each run that has its serial key for longer than its job may take: others wait for it.
func (s *Rescue) stuck(ctx context.Context, now time.Time) error {
	locks, err := s.store.Locks(ctx, oldestLocks)
	if err != nil {
		return err
	}
	told := make(map[daybook.Lock]bool, len(s.told))
	var faults []error
	for _, l := range locks {
		j, err := s.definition(ctx, l.Key.Job())
		if err != nil || j == nil || j.Expect.MaxRuntime <= 0 || now.Sub(l.Since) <= j.Expect.MaxRuntime {
			faults = append(faults, err)
			continue
		}
		once := daybook.Lock{Serial: l.Serial, Key: l.Key, Since: l.Since}
		if told[once] = true; s.told[once] {
			continue
		}
		text := fmt.Sprintf("it has serial key %s since %s, longer than its max_runtime %s", l.Serial, l.Since.Format(time.RFC3339), j.Expect.MaxRuntime)
		if err := s.store.Alert(ctx, daybook.NewAlert(daybook.AlertSerialStuck, l.Key, l.Key.Job(), j.Priority, text, "", now)); err != nil {
			faults = append(faults, err)
			delete(told, once)
		}
	}
	s.told = told
	return errors.Join(faults...)
}
