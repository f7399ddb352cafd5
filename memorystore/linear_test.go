package memorystore_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/linear"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestLinearizable: all answers to clients that ask at once are those of a store that carries out one
// operation after the other.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	s, setNow := openWith(t, memorystore.Options{})
	f := &linear.Fleet{
		Stores: []store.Store{s}, Start: storetest.Start, Operations: deep.Steps(10_000, 300_000), Clients: 16, Seed: deep.Seed(1),
		SetTime: func(now int64) error { setNow(now); return nil },
	}
	f.Run(t).Check(t)
}
