package memorystore

import (
	"cmp"
	"time"
)

// Settings are the options that can change while a store is in use.
type Settings struct {
	// MaxKeys is as in [Options]. Keys above a lower bound stay until they expire.
	MaxKeys int

	// SweepInterval is as in [Options].
	SweepInterval time.Duration
}

// Apply changes the settings. The returned function goes back to the ones before, unless others were applied since.
func (s *Store) Apply(settings Settings) (revert func()) {
	before := s.settings.Swap(&settings)
	s.wake()
	return func() {
		if s.settings.CompareAndSwap(&settings, before) {
			s.wake()
		}
	}
}

// wake makes the sweeper read its interval again.
func (s *Store) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *Store) maxKeys() int { return cmp.Or(s.settings.Load().MaxKeys, DefaultMaxKeys) }

func (s *Store) sweepInterval() time.Duration {
	return cmp.Or(s.settings.Load().SweepInterval, DefaultSweepInterval)
}
