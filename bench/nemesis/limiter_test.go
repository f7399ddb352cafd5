package main

import (
	"sync"
	"time"
)

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
