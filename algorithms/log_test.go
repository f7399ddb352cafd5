package algorithms_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestLogTakesWhatItHolds: the memory of a log depends on its number of charges. It depends
// neither on the limit, which in mholt/caddy-ratelimit took 4.8 GB, nor on the costs.
func TestLogTakesWhatItHolds(t *testing.T) {
	for _, cost := range []int64{1, 50_000_000} {
		var log algorithms.Log
		for i := range int64(10_000) {
			log.Append(i, cost)
			if room, held := log.Room(), log.Len(); room > held+held/4+1 {
				t.Fatalf("room for %d charges, %d held", room, held)
			}
		}
		for log.Len() > 0 {
			log.Forget(min(log.Len(), 777))
			if room, held := log.Room(), log.Len(); room > 2*held+1 {
				t.Fatalf("room for %d charges after some are forgotten, %d held", room, held)
			}
		}
	}
}
