package algorithms_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestCounterAgainstLog measures how often sliding_window_counter decides otherwise than
// the exact log, for clients at various shares of a limit of 100 a minute. The figures
// stand in docs/algorithms.md; here they only must not become worse.
func TestCounterAgainstLog(t *testing.T) {
	const limit, clients, events = 100, 40, 5000
	for _, traffic := range []struct {
		name   string
		gap    func(r *rand.Rand) time.Duration // to the next request of a client
		atMost float64                          // share decided otherwise
	}{
		{"steady random, half the limit", poisson(0.5), 0.001},
		{"steady random, 0.9 of the limit", poisson(0.9), 0.04},
		{"steady random, at the limit", poisson(1), 0.11},
		{"steady random, 1.5 times the limit", poisson(1.5), 0.36},
		{"steady random, 3 times the limit", poisson(3), 0.43},
		{"bursts of 50 and pauses", bursts(50), 0.22},
	} {
		other, total, passed := 0, 0, [2]int{}
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
					other++
				}
				if a {
					passed[0]++
				}
				if b {
					passed[1]++
				}
			}
		}
		share := float64(other) / float64(total)
		t.Logf("%-36s %6.3f %% decided otherwise; %.2f %% as many pass", traffic.name, 100*share, 100*float64(passed[1])/float64(passed[0]))
		if share > traffic.atMost {
			t.Errorf("%s: %.4f decided otherwise, was at most %.4f", traffic.name, share, traffic.atMost)
		}
	}
}

// poisson is random traffic at a share of 100 a minute.
func poisson(share float64) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration {
		return time.Duration(r.ExpFloat64() / share * float64(time.Minute) / 100)
	}
}

// bursts are quick requests, so many in a row, and pauses of a minute or so.
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
