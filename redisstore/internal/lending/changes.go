package lending

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// An override, a ban or a reset is noted in the store, and while this process holds anything, it looks there about once
// a second. Then it gives up what it holds of the keys in question, so their next requests ask. Each ask looks at the
// override and the ban of its key by itself.

// lookEvery is how often this process looks: a change is known a second after it at the latest, if an answer takes no
// longer than a tenth of it.
const lookEvery = 900 * time.Millisecond

// watch looks for changes until the store is closed.
func (l *Layer) watch() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var seen protocol.Changes
	for {
		select {
		case <-ticker.C:
			l.look(&seen)
		case <-l.Done:
			return
		}
	}
}

// look gives up what is held of keys whose rules have changed since the last look.
func (l *Layer) look(seen *protocol.Changes) {
	if l.Loans.Size() == 0 && !l.Slots.Any() {
		seen.Forget()
		return
	}
	text, err := l.Changes(context.Background())
	if err != nil {
		return // the next look sees more
	}
	if marks, all := seen.Read(text); all || len(marks) > 0 {
		l.void(func(zone, key string) bool { return all || marks[protocol.ChangeMark(zone, key)] })
	}
}

// VoidKey gives up what is held of a key of a zone.
func (l *Layer) VoidKey(rule *store.Rule, key string) {
	l.void(func(z, k string) bool { return k == key && z == rule.Zone() })
}

// void gives up what is held of some keys, and forgets what was remembered of their refusals.
func (l *Layer) void(which func(zone, key string) bool) {
	now := l.Loans.Now()
	for _, e := range l.Loans.Void(now, which) {
		l.below.Forget(e.Rule, e.Key)
	}
	l.giveBackSlots(l.Slots.Void(now, which))
}
