package topology

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// silentAfter is how long after its first failure a server counts as silent when it fails again. It is asked again
// so soon.
const silentAfter = 3 * time.Second

// silences are of the servers that did not say, when they were last asked, which of them has which slots.
type silences struct {
	logger func() *zap.Logger

	mu sync.Mutex
	of map[string]silence // by address
}

// silence counts once it has lasted for some time, and then was told.
type silence struct {
	store.Silence
	told bool
}

// keep forgets the servers that are no longer asked.
func (s *silences) keep(asked []question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.of, func(address string, _ silence) bool {
		return !slices.ContainsFunc(asked, func(q question) bool { return q.address == address })
	})
}

// note records what has come of asking a server.
func (s *silences) note(address string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, was := s.of[address]
	if err == nil {
		if delete(s.of, address); one.told {
			s.logger().Info("a server of the rate limit store answers again",
				zap.String("address", address), zap.Duration("after", time.Since(one.Since)))
		}
		return
	}
	if !was {
		one.Silence = store.Silence{Address: address, Since: time.Now()}
	}
	one.Err = node.Clip(node.Advise(err, false))
	if !one.told && time.Since(one.Since) >= silentAfter {
		one.told = true
		s.logger().Warn("a server of the rate limit store is silent: requests are decided without it, but a failover may need it",
			zap.String("address", address), zap.Error(one.Err))
	}
	s.of[address] = one
}

// Silent returns the servers that are silent, by address.
func (s *silences) Silent() (all []store.Silence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.of {
		if one.told {
			all = append(all, one.Silence)
		}
	}
	slices.SortFunc(all, func(a, b store.Silence) int { return strings.Compare(a.Address, b.Address) })
	return all
}
