package storetest

import (
	"github.com/seed-161337e5/caddyratelimit/internal/testing/linear"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// asAlgorithms asks for keys of all algorithms, in one zone or in several, with overrides and bans: requests, peeks, dry runs,
// adjustments, resets, and steps of the clock, drawn by chance. All that is answered must be what package algorithms says.
func asAlgorithms(b *bench) {
	f := &linear.Fleet{
		Stores: []store.Store{b.store}, Start: Start, Operations: 4000, Clients: 1, Seed: 1,
		SetTime: func(now int64) error { b.setNow(now); return nil },
	}
	f.Run(b).Check(b)
}
