//go:build deep

package algorithms_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestCounterAgainstLog: in random traffic of half a limit up to three times as much, sliding_window_counter admits about what the
// exact log admits: from 99.8 to 101.1 %, as docs/algorithms.md says.
func TestCounterAgainstLog(t *testing.T) {
	const limit, clients, events = 100, 40, 5000
	for _, load := range []float64{0.5, 0.9, 1, 1.5, 3} {
		var passed [2]float64
		for c := range clients {
			r := rand.New(rand.NewPCG(uint64(c), 7))
			keys := [2]*key{newKey(t, "sliding_window_log"), newKey(t, "sliding_window_counter")}
			params, err := keys[0].algorithm.Prepare(algorithms.Limit{Events: limit, Window: time.Minute})
			must(t, err)
			now := start.UnixMicro() + r.Int64N(60e6)
			for range events {
				now += int64(r.ExpFloat64() / load * 60e6 / limit)
				for i, k := range keys {
					if k.take(params, now, 1).Allowed {
						passed[i]++
					}
				}
			}
		}
		if part := passed[1] / passed[0]; part < 0.9975 || part > 1.0115 {
			t.Errorf("%v times the limit: the counter admits %.2f %% of what the log admits", load, 100*part)
		}
	}
}
