package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"testing"
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
	broken     bool          // answers 500

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

// serve runs the limiter in front of an upstream, for as long as the test.
func (l *limiter) serve(t *testing.T, upstream string) (address string) {
	begin := time.Now()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: upstream})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.broken {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		a := l.decide(r.Header.Get(clientHeader), time.Since(begin))
		if !a.pass {
			w.Header().Set("Retry-After", strconv.Itoa(a.retryAfter))
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.Header().Set("RateLimit", `"clients";r=`+strconv.Itoa(a.remaining)+`;t=1`)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
