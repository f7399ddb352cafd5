//go:build deep

package algorithms_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestCounterAgainstLog measures how often sliding_window_counter and the exact log disagree,
// for clients at various fractions of a limit of 100 a minute. The figures are in
// docs/algorithms.md; this test only checks that they do not become worse.
func TestCounterAgainstLog(t *testing.T) {
	const limit, clients, events = 100, 40, 5000
	for _, traffic := range []struct {
		name   string
		gap    func(r *rand.Rand) time.Duration // to the next request of a client
		atMost float64                          // fraction of decisions that differ
	}{
		{"steady random, half the limit", poisson(0.5), 0.001},
		{"steady random, 0.9 of the limit", poisson(0.9), 0.04},
		{"steady random, at the limit", poisson(1), 0.11},
		{"steady random, 1.5 times the limit", poisson(1.5), 0.36},
		{"steady random, 3 times the limit", poisson(3), 0.43},
		{"bursts of 50 and pauses", bursts(50), 0.22},
	} {
		differ, total, passed := 0, 0, [2]int{}
		for c := range clients {
			r := rand.New(rand.NewPCG(uint64(c), 7))
			exact, estimate := newKey(t, "sliding_window_log"), newKey(t, "sliding_window_counter")
			params, err := exact.algorithm.Prepare(algorithms.Limit{Events: limit, Window: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			now := start.UnixMicro() + r.Int64N(60e6)
			for range events {
				now += traffic.gap(r).Microseconds()
				a, b := exact.take(params, now, 1).Allowed, estimate.take(params, now, 1).Allowed
				total++
				if a != b {
					differ++
				}
				if a {
					passed[0]++
				}
				if b {
					passed[1]++
				}
			}
		}
		fraction := float64(differ) / float64(total)
		t.Logf("%-36s %6.3f %% of the decisions differ; the counter admits %.2f %% of what the log admits",
			traffic.name, 100*fraction, 100*float64(passed[1])/float64(passed[0]))
		if fraction > traffic.atMost {
			t.Errorf("%s: %.4f of the decisions differ, want at most %.4f", traffic.name, fraction, traffic.atMost)
		}
	}
}

// poisson is random traffic at a fraction of 100 requests a minute.
func poisson(fraction float64) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration {
		return time.Duration(r.ExpFloat64() / fraction * float64(time.Minute) / 100)
	}
}

// bursts are n quick requests in a row, then a pause of up to a minute.
func bursts(n int) func(*rand.Rand) time.Duration {
	left := 0
	return func(r *rand.Rand) time.Duration {
		if left--; left <= 0 {
			left = n
			return time.Duration(r.Float64() * float64(time.Minute))
		}
		return 100 * time.Millisecond
	}
}
