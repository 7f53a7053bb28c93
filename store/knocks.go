package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/daybook-run/daybook"
)

// Triggers that come at the same time share a transaction, as long as each is answered by its own rows and changes no run that
// stands already: a new key, or one that is only told how it stands. What is more than that is done by itself, and then
// only its own caller waits for what holds it up.

// sharedPayload is from how many bytes on a payload goes by itself: a thousand of them are held in memory at once.
const sharedPayload = 16 << 10

// heldUpLimit is how many triggers wait at the same time for whoever makes their jobs stand still. Each has a connection meanwhile, and
// there must be some for all others.
const heldUpLimit = 4

// answer has a trigger answered.
func (s *Store) answer(ctx context.Context, k *knock) error {
	what := "trigger " + string(k.asks.Key)
	if k.mayShare() {
		err := s.knocking.do(ctx, what, k)
		if err == nil && !k.apart || err != nil && (ctx.Err() != nil || k.with < 2 || k.whole || s.concernsAll(err)) {
			return err
		}
	}
	if k.held {
		select {
		case s.heldUp <- struct{}{}:
			defer func() { <-s.heldUp }()
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
	}
	return s.answerAll(ctx, what, true, func() []*knock { return []*knock{k} })
}

// mayShare reports whether a trigger may be one of several: not, when it asks for what only a transaction of its own does, and may
// wait for.
func (k *knock) mayShare() bool {
	a := k.asks
	return a.Take == nil && !a.Again && !a.RunSkipped && a.By() != daybook.SourceReplay && len(a.Payload) < sharedPayload
}

// answerAll answers triggers in one transaction. One that would have to wait for whoever makes its job stand still is set apart,
// unless it waits.
func (s *Store) answerAll(ctx context.Context, what string, wait bool, next func() []*knock) error {
	var all []*knock
	return s.provedWrite(ctx, what, func(ctx context.Context, t *tx) (bool, error) { return t.answered(ctx, all) }, func(ctx context.Context, t *tx) error {
		if all = next(); len(all) == 0 {
			return ctx.Err()
		}
		for _, k := range all {
			k.begin(len(all), wait)
		}
		if len(all) == 1 {
			return t.answer(ctx, all[0])
		}
		return t.answerTogether(ctx, all)
	})
}

// answered is the proof that triggers were answered: they are one transaction, so the record of one proves all.
func (t *tx) answered(ctx context.Context, all []*knock) (bool, error) {
	for _, k := range all {
		if !k.apart {
			return exists(selectTrigger, string(k.ask.Key), k.id)(ctx, t)
		}
	}
	return false, nil
}

// answer answers one trigger, whatever it asks for.
func (t *tx) answer(ctx context.Context, k *knock) error {
	for _, part := range []func(context.Context, *knock) error{t.stand, t.decide, t.carryOut, t.read, t.take} {
		if err := part(ctx, k); err != nil || k.apart {
			return err
		}
	}
	return nil
}

// answerTogether answers those of several triggers that are plain, and leaves the others apart: of a key that is asked for twice,
// the second has to see what came of the first.
func (t *tx) answerTogether(ctx context.Context, all []*knock) error {
	all = slices.SortedStableFunc(slices.Values(all), func(a, b *knock) int { return cmp.Compare(a.ask.Key, b.ask.Key) }) // one order for all
	var asked []*knock
	for i, k := range all {
		if k.apart = i > 0 && k.ask.Key == all[i-1].ask.Key; !k.apart {
			asked = append(asked, k)
		}
	}
	if err := t.look(ctx, asked...); err != nil {
		return err
	}
	plain, err := t.plain(ctx, asked)
	if err != nil || len(plain) == 0 {
		return err
	}
	var w knocked
	for _, k := range plain {
		if err := t.gather(&w, k); err != nil {
			return err
		}
	}
	if err := t.writeKnocked(ctx, &w); err != nil {
		return err
	}
	for _, k := range plain {
		if err := t.read(ctx, k); err != nil {
			return err
		}
	}
	for _, k := range all {
		k.whole = true
	}
	return nil
}

// plain returns those that can be answered together, and sets the others apart.
func (t *tx) plain(ctx context.Context, asked []*knock) (plain []*knock, err error) {
	var standing []string
	for _, k := range asked {
		if k.apart = k.apart || !k.plain(); !k.apart && k.found != nil {
			standing = append(standing, string(k.ask.Key))
		}
	}
	free, err := t.free(ctx, standing)
	if err != nil {
		return nil, err
	}
	var marked []*daybook.Run
	for _, k := range asked {
		r := k.found
		if k.apart = k.apart || r != nil && !free[string(k.ask.Key)]; k.apart {
			continue
		}
		if plain = append(plain, k); r != nil && marks(r) && r.Fence > 0 {
			marked = append(marked, r)
		}
	}
	if len(marked) > 0 {
		err = t.s.loadSteps(ctx, t.query, marked)
	}
	return plain, err
}

const selectFree = `SELECT key FROM daybook_runs WHERE key /*in $1*/ /*lock*/`

// free holds rows to be counted on, and passes over those that another transaction holds up: it may be about to hold up others of
// them, as one that ends many runs is, and each would wait for the other.
func (t *tx) free(ctx context.Context, keys []string) (map[string]bool, error) {
	free := make(map[string]bool, len(keys))
	if len(keys) == 0 {
		return free, nil
	}
	list, err := t.s.d.list(keys)
	if err != nil {
		return nil, err
	}
	found, err := t.texts(ctx, selectFree, list)
	for _, k := range found {
		free[k] = true
	}
	return free, err
}

// plain decides about a trigger that needs no more than it was told, and reports whether it is one.
func (k *knock) plain() bool {
	k.reply = daybook.Decide(k.ask, k.Standing)
	switch r := k.found; {
	case k.frozen || len(k.ask.Freezes) > 0 || k.lapse > 0 || k.ask.Activity(k.reply, k.now) != nil:
		return false
	case r != nil:
		return k.reply.Act == daybook.ActNone && k.answersByItself()
	default:
		return len(k.formerly) == 0 && k.renamedTo == "" && (k.reply.Act == daybook.ActNone || k.template != nil)
	}
}
