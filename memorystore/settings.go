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

// Apply changes the settings. It returns the previous ones, for [Store.Revert].
func (s *Store) Apply(settings *Settings) (before *Settings) {
	before = s.settings.Swap(settings)
	s.wake()
	return before
}

// Revert goes back from settings to the ones before, unless others were applied since.
func (s *Store) Revert(settings, before *Settings) {
	if s.settings.CompareAndSwap(settings, before) {
		s.wake()
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
