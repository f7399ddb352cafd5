package lend

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// lendable are the algorithms that can lend.
var lendable = []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window_counter", "sliding_window_log"}

// drawFleet draws a fleet, its limit, its clocks, and the faults that it meets.
func drawFleet(seed uint64, name string) *simulation {
	r := rand.New(rand.NewPCG(seed, 1))
	period := time.Duration(1+r.IntN(100)) * time.Millisecond
	l := algorithms.Limit{Events: 1 + r.Int64N([]int64{5, 50, 500}[r.IntN(3)]), Window: period * time.Duration(1+r.IntN(40))}
	if name == "token_bucket" || name == "leaky_bucket" {
		l.Burst = 1 + r.Int64N(2*l.Events)
	}
	s := newSimulation(r, name, l, period, 0)
	slow := time.Duration(r.Float64() * float64(period) / 2)
	s.latency = func() time.Duration { return time.Duration(r.Float64() * float64(slow)) }
	s.timeout = slow + time.Millisecond
	s.lost = []float64{0.001, 0.05, 0.3}[r.IntN(3)]
	for range 1 + r.IntN(4) {
		s.join().rate = 1 + (2*r.Float64()-1)/(Drift+1)
	}
	return s
}

// happen lets a fleet live for some events.
func (s *simulation) happen(n int) {
	var step func()
	step = func() {
		if n--; n == 0 {
			return
		}
		node := s.nodes[s.IntN(len(s.nodes))]
		switch s.IntN(60) {
		case 0: // a crash
			node.dead = true
			for i := range s.nodes {
				if s.nodes[i] == node {
					s.nodes[i] = s.nodes[len(s.nodes)-1]
					s.nodes = s.nodes[:len(s.nodes)-1]
					break
				}
			}
			s.join().rate = node.rate
		case 1: // a wall clock is set
			node.jump += time.Duration((s.Float64() - 0.5) * 4 * float64(s.period))
		default:
			s.request(node, 1+s.Int64N(1+s.Int64N(4)))
		}
		gap := s.Float64() * float64(s.period) / 20
		if s.IntN(30) == 0 {
			gap *= 200
		}
		s.in(time.Duration(gap), step)
	}
	s.in(0, step)
	for n > 0 {
		s.run(s.now + s.period)
		s.now += s.period
	}
}

// TestFleetEqualsOneLimiter: whatever happens to a fleet, one limiter would have admitted all
// that the fleet admits, and would have had left at least what each request is told.
func TestFleetEqualsOneLimiter(t *testing.T) {
	t.Parallel()
	for _, name := range lendable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admitted, calls := int64(0), 0
			for seed := range uint64(deep.Steps(60, 6000)) {
				s := drawFleet(seed, name)
				s.happen(400)
				if s.over > 0 {
					t.Fatalf("seed %d: %d admissions too many", seed, s.over)
				}
				if s.promised > 0 {
					t.Fatalf("seed %d: %d requests were told of more than was left", seed, s.promised)
				}
				admitted, calls = admitted+s.admitted, calls+s.calls
			}
			t.Logf("%d events admitted, %d calls", admitted, calls)
		})
	}
}

// TestFleetFindsMutation: without the rule that what is lent counts as used, the same fleets admit
// too much.
func TestFleetFindsMutation(t *testing.T) {
	capped = false
	defer func() { capped = true }()
	for _, name := range lendable {
		found := 0
		for seed := range uint64(20) {
			s := drawFleet(seed, name)
			s.happen(400)
			found += s.over
		}
		if found == 0 {
			t.Errorf("%s: no fleet admitted too much", name)
		}
	}
}

// TestCallsAndAdmissions: lending saves most calls, and admits nearly all that one limiter would.
func TestCallsAndAdmissions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		load   float64 // of the rate
		calls  float64 // at most, for each request
		shift  bool
		bursts bool
	}{
		{"half", 0.5, 0.06, false, false},
		{"nearly all", 0.95, 0.04, false, false},
		{"half as much again", 1.5, 0.25, false, false},
		{"three times", 3, 0.15, false, false},
		{"moving", 1.2, 0.25, true, false},
		{"flood after quiet", 8, 0.1, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const rate = 5000
			s := newSimulation(rand.New(rand.NewPCG(1, 2)), "token_bucket", algorithms.Limit{Events: rate, Window: time.Second}, 100*time.Millisecond, 200*time.Microsecond)
			for range 5 {
				s.join()
			}
			s.flood(time.Duration(deep.Steps(4, 20))*time.Second, func(now time.Duration) float64 {
				if c.bursts && now%(4*time.Second) > 500*time.Millisecond {
					return 0.1 * rate
				}
				return c.load * rate
			}, c.shift)
			share, calls := float64(s.admitted)/float64(s.possible), float64(s.calls)/float64(s.requests)
			t.Logf("%.4f of what one limiter admits, %.3f calls a request", share, calls)
			if s.over > 0 || share < 0.985 || calls > c.calls {
				t.Errorf("%d too many, %.4f admitted, %.3f calls, want 0, 0.985 and %.3f", s.over, share, calls, c.calls)
			}
		})
	}
}
