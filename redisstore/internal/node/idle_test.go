//go:build deep

package node

import (
	"regexp"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestClosedWhileIdle: if Redis has closed a connection since the last call, the next call is made over
// another one, and does not fail.
func TestClosedWhileIdle(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	n, ctx := open(t, server.Addr(), 10*time.Second), t.Context()
	rule := storetest.Rule(t, "z", "token_bucket", algorithms.Limit{Events: 100, Window: time.Hour})
	for i := range int64(20) {
		r := request(rule, "k", 1)
		if err := n.Do(ctx, r, false); err != nil || r.Decisions[0].Remaining != 99-i {
			t.Fatalf("call %d: %v, %+v", i+1, err, r.Decisions[0])
		}
		if links := n.links.count.Load(); i > 0 && links != 1 { // the first call has learned that Redis does not know the script
			t.Fatalf("call %d: %d links", i+1, links)
		}
		must(t, server.Admin().Do(ctx, "client", "kill", "type", "normal", "skipme", "yes").Err())
		time.Sleep(maxIdle) // before that, a call does not look whether it was closed
	}
}

// TestIdleLinksAreKept: a connection whose last call had to be over by now is used again.
func TestIdleLinksAreKept(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	server := redistest.Start(t)
	n, ctx := open(t, server.Addr(), timeout), t.Context()
	received := func() string {
		return regexp.MustCompile(`total_connections_received:(\d+)`).FindString(server.Admin().Info(ctx, "stats").Val())
	}
	rule := storetest.Rule(t, "z", "token_bucket", algorithms.Limit{Events: 100, Window: time.Hour})
	var before string
	for i := range 3 {
		must(t, n.Do(ctx, request(rule, "k", 1), false))
		if i == 1 { // the first call has learned that Redis does not know the script
			before = received()
			time.Sleep(timeout)
		}
	}
	if after := received(); after != before {
		t.Errorf("another connection was made: %s before, %s after", before, after)
	}
}
