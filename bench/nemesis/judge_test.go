package main

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// simulate sends a schedule through a limiter on a virtual time. A request is decided at any moment between its sending and its
// arrival, up to 300 ms.
func simulate(l *limiter, offered load, seed uint64) []request {
	random := rand.New(rand.NewPCG(seed, 0))
	all := offered.schedule()
	decided := make([]time.Duration, len(all))
	order := make([]int, len(all))
	for i := range all {
		order[i] = i
		decided[i] = all[i].sent + time.Duration(random.Int64N(int64(150*time.Millisecond)))
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(decided[a], decided[b]) })
	for _, i := range order {
		r := &all[i]
		a := l.decide(string(rune('a'+r.client)), decided[i])
		r.done = decided[i] + time.Duration(random.Int64N(int64(150*time.Millisecond)))
		if a.pass {
			r.status, r.remaining, r.arrivals = 200, a.remaining, []time.Duration{r.done}
		} else {
			r.status, r.retryAfter = 429, a.retryAfter
		}
	}
	return all
}

var offered = load{clients: 4, limit: 50, window: 5 * time.Second, below: 0.5, above: 2, volley: 10, time: 30 * time.Second}

// TestExact: the kit finds nothing wrong with an exact limiter, and what it offers uses the limit up.
func TestExact(t *testing.T) {
	p, err := newPromise("sliding", offered.limit, offered.window)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		v := judge(simulate(&limiter{limit: offered.limit, window: offered.window}, offered, seed), p, 0)
		if v.beyond+v.causeless+v.failed+v.retry.less+v.retry.more+v.left.less+v.left.more > 0 || v.most > offered.limit {
			t.Fatalf("seed %d: %+v", seed, v)
		}
		if v.most < offered.limit*9/10 || v.refused < 100 || v.retry.right != v.refused || v.left.right != v.admitted {
			t.Fatalf("seed %d: hardly anything was judged: %+v", seed, v)
		}
	}
}

// TestWrong: the kit tells each way to be wrong from the others.
func TestWrong(t *testing.T) {
	p, err := newPromise("sliding", offered.limit, offered.window)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		limiter *limiter
		found   func(verdict) int
	}{
		"leaks one refusal in 20":      {&limiter{leakEach: 20}, func(v verdict) int { return v.beyond }},
		"refuses one in 50 too many":   {&limiter{strictEach: 50}, func(v verdict) int { return v.causeless }},
		"tells waits that are too low": {&limiter{hasty: 2 * time.Second}, func(v verdict) int { return v.retry.less }},
		"tells waits that are too long": {
			&limiter{hasty: -2 * time.Second}, func(v verdict) int { return v.retry.more },
		},
		"says that more is left":      {&limiter{boast: 20}, func(v verdict) int { return v.left.more }},
		"says that less is left":      {&limiter{boast: -20}, func(v verdict) int { return v.left.less }},
		"has twice the limit":         {&limiter{limit: 100}, func(v verdict) int { return v.beyond }},
		"has half the limit":          {&limiter{limit: 25}, func(v verdict) int { return v.causeless }},
		"has a window of half a size": {&limiter{window: offered.window / 2}, func(v verdict) int { return v.beyond }},
	} {
		t.Run(name, func(t *testing.T) {
			l := test.limiter
			l.limit, l.window = cmp.Or(l.limit, offered.limit), cmp.Or(l.window, offered.window)
			if v := judge(simulate(l, offered, 1), p, 0); test.found(v) == 0 {
				t.Errorf("not found: %+v", v)
			}
		})
	}
}

// limiter is an exact limiter with a log of its charges, or one that is wrong in one way.
type limiter struct {
	limit  int
	window time.Duration

	leakEach   int           // admits each such refusal, and does not charge it
	strictEach int           // refuses each such request without a cause
	hasty      time.Duration // tells waits that are so much too short
	boast      int           // reports so much more than is left

	mu               sync.Mutex
	charges          map[string][]time.Duration
	refusals, checks int
}

// answer is what a limiter says about a request.
type answer struct {
	pass       bool
	retryAfter int
	remaining  int
}

func (l *limiter) decide(client string, now time.Duration) answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.charges == nil {
		l.charges = make(map[string][]time.Duration)
	}
	var counted []time.Duration
	for _, at := range l.charges[client] {
		if at > now-l.window {
			counted = append(counted, at)
		}
	}
	l.charges[client] = counted
	l.checks++
	if l.strictEach > 0 && l.checks%l.strictEach == 0 {
		return answer{retryAfter: 1}
	}
	if len(counted) >= l.limit {
		l.refusals++
		if l.leakEach > 0 && l.refusals%l.leakEach == 0 {
			return answer{pass: true}
		}
		wait := counted[len(counted)-l.limit] + l.window - now
		return answer{retryAfter: int((wait - l.hasty + time.Second - 1) / time.Second)}
	}
	l.charges[client] = append(counted, now)
	return answer{pass: true, remaining: l.limit - len(counted) - 1 + l.boast}
}
