package caddyratelimit

import "github.com/seed-161337e5/caddyratelimit/internal/pool"

// PoolsInUse tells how many stores are open and how many zones are remembered, over all
// configs that are alive.
func PoolsInUse() (openStores, zones int) {
	count := func(n *int) func(any, any) bool {
		return func(any, any) bool {
			*n++
			return true
		}
	}
	pool.Stores.Range(count(&openStores))
	pool.ZoneStates.Range(count(&zones))
	return openStores, zones
}
