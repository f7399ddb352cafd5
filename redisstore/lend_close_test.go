//go:build deep

package redisstore_test

import (
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestLendCloseWhileAsking: a store that is closed while an ask is under way gives back what the answer lends.
// Otherwise all of it would count as spent.
func TestLendCloseWhileAsking(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr())
	s := open(t, redisstore.Options{Address: proxy.Addr(), Timeout: 5 * time.Second})
	s.Silence()
	// A slot is held: that it is given back shows that the store is being closed.
	slot := store.Check{Rule: ruleOf(t, "slots", "concurrency", algorithms.Limit{Events: 1, Lease: time.Hour}), Key: "k", Cost: 1, LeaseID: store.NewLeaseID()}
	c := store.Check{Rule: lendingRule(t, "z", "fixed_window", algorithms.Limit{Events: 1000, Window: 1000 * time.Hour}, 10*time.Second), Key: "k", Cost: 1}
	if d, err := decideOne(s, slot); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	const before = 7 // the next request asks for a loan
	for range before {
		if d, err := decideOne(s, c); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	}
	asked, closing := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	replies := 0
	proxy.Rewrite(func(command string, reply []byte) []byte {
		if command != "evalsha" && command != "eval" || reply[0] == '-' { // Redis may not know the script yet
			return reply
		}
		mu.Lock()
		replies++
		n := replies
		mu.Unlock()
		switch n {
		case 1:
			close(asked)
			<-closing
		case 2:
			close(closing)
		}
		return reply
	})
	passed := make(chan bool, 1)
	go func() {
		d, err := decideOne(s, c)
		passed <- err == nil && d.Allowed
	}()
	<-asked
	if stats := s.Stats(); stats.Lent["z"] != 0 {
		t.Fatalf("%+v", stats)
	}
	closed(t, s)
	if !<-passed {
		t.Error("the request was not answered")
	}
	if n := used(t, server, c.Rule); n != before+1 {
		t.Errorf("%d used, want %d", n, before+1)
	}
}
