package redisstore_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/model/vectors"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestVectors plays the scenarios in testdata/vectors in Lua. TestGoldenVectors in
// algorithms plays them in Go, and writes them.
func TestVectors(t *testing.T) {
	t.Parallel()
	p := newPair(t, redistest.Shared(t))
	for _, f := range vectors.Load(t, filepath.Join("..", "testdata", "vectors")) {
		for _, s := range f.Scenarios {
			t.Run(f.Name+"/"+s.Title, func(t *testing.T) {
				s.Play(t, &luaKey{
					TB: t, pair: p, side: newRedisSide(p.redis),
					algorithm: f.Algorithm, key: f.Name + s.Title, turns: make(map[string]int64),
				})
			})
		}
	}
}

// luaKey is one key in Redis.
type luaKey struct {
	testing.TB
	pair           *pair
	side           side
	algorithm, key string
	turns          map[string]int64
}

func (k *luaKey) check(l algorithms.Limit, cost int64, name string) store.Check {
	c := store.Check{Rule: storetest.Rule(k.TB, "zone", k.algorithm, l), Key: k.key, Cost: cost}
	if storetest.LeaseID(c.Rule) != "" {
		c.LeaseID = k.key + name
	}
	return c
}

// Take implements [vectors.Key].
func (k *luaKey) Take(l algorithms.Limit, now, cost int64, name string) algorithms.Decision {
	k.pair.set(now, 0)
	d := k.side.take(k.TB, k.check(l, cost, name))
	k.turns[name] = d.Turn()
	return d
}

// Ahead implements [vectors.Key].
func (k *luaKey) Ahead(l algorithms.Limit, now, want int64, name string) (int64, time.Duration) {
	k.pair.set(now, 0)
	c := k.check(l, 0, name)
	c.Ahead = want
	d := k.side.take(k.TB, c)
	k.turns[name] = now
	return d.Units, d.Lasts
}

// Renew implements [vectors.Key].
func (k *luaKey) Renew(l algorithms.Limit, now, cost int64, name string) {
	k.pair.set(now, 0)
	k.side.renew(k.TB, k.check(l, cost, name))
}

// Adjust implements [vectors.Key].
func (k *luaKey) Adjust(l algorithms.Limit, now, at, delta int64, name string) {
	k.pair.set(now, 0)
	k.side.adjust(k.TB, store.Adjustment{Check: k.check(l, -delta, name), At: at, Turn: k.turns[name], Delta: delta})
}
