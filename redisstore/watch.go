package redisstore

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
)

// While this process holds anything, it looks about once a second for overrides, bans and resets that are noted in the store:
// see changed. Then it gives up what it holds of the keys in question, so their next requests ask. Each ask looks at the
// override and the ban of its key by itself.

// lookEvery is how often this process looks, for changes of networks too: a change is known a second after it at the latest, if an answer takes no
// longer than a tenth of it.
const lookEvery = 900 * time.Millisecond

// watch looks for changes until the store is closed.
func (s *Store) watch() {
	select {
	case <-s.lending.Loans.Used:
	case <-s.quit:
		return
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var seen protocol.Changes
	for {
		select {
		case <-ticker.C:
			s.look(&seen)
		case <-s.quit:
			return
		}
	}
}

// look gives up what is held of keys whose rules have changed since the last look.
func (s *Store) look(seen *protocol.Changes) {
	if !s.lending.Holds() {
		seen.Forget()
		return
	}
	text, err := s.changes(context.Background())
	if err != nil {
		return // the next look sees more
	}
	if marks, all := seen.Read(text); all || len(marks) > 0 {
		s.void(func(zone, key string) bool { return all || marks[protocol.ChangeMark(zone, key)] })
	}
}
