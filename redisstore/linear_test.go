package redisstore_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/linear"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestLinearizable: three stores lose requests and replies on their ways to one Redis. Still all
// answers that clients get are those of one store that carries out one operation after the other, and
// every lost operation was carried out once or not at all. In "make deep", at least 100,000 answers are checked.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	f := &linear.Fleet{
		Start: storetest.Start, Operations: deep.Steps(6_000, 110_000), Clients: 32, Seed: deep.Seed(1),
		SetTime: func(now int64) error { return server.Admin().Set(context.Background(), clockKey(server), now, 0).Err() },
	}
	var proxies []*faultproxy.Proxy
	choose := inTurn()
	for range 3 {
		proxy := faultproxy.Start(t, server.Addr())
		options := asking(server)
		options.Address, options.Timeout = proxy.Addr(), time.Second
		s := clocked(t, server, options)
		proxy.Inject(choose)
		proxies, f.Stores = append(proxies, proxy), append(f.Stores, s)
	}
	h := f.Run(t)
	for _, proxy := range proxies {
		proxy.Inject(nil)
	}
	for _, fault := range faultsInTurn {
		n := 0
		for _, proxy := range proxies {
			n += proxy.Count(fault)
		}
		if n == 0 {
			t.Errorf("%s did not happen", fault)
		}
	}
	h.Check(t)
}

// faultsInTurn are the faults of scripts, in the order in which they come.
var faultsInTurn = []faultproxy.Fault{
	faultproxy.CutAfter, faultproxy.CutBefore, faultproxy.SwallowReply, faultproxy.CutWithin, faultproxy.Late, faultproxy.SwallowCommand,
}

// inTurn has one script in many meet a fault. Those that take long come only a few times. However many
// clients share a call, there are enough calls for each fault to come.
func inTurn() func(command string) faultproxy.Fault {
	const oneIn, mostSlow = 50, 9
	var scripts, slow atomic.Int64
	return func(command string) faultproxy.Fault {
		if !strings.HasPrefix(command, "eval") {
			return faultproxy.None
		}
		n := scripts.Add(1)
		if n%oneIn != 0 {
			return faultproxy.None
		}
		fault := faultsInTurn[n/oneIn%int64(len(faultsInTurn))]
		switch fault {
		case faultproxy.SwallowReply, faultproxy.SwallowCommand, faultproxy.Late:
			if slow.Add(1) > mostSlow {
				return faultproxy.CutAfter
			}
		}
		return fault
	}
}

// TestLinearizableByRedisTime is the same without faults, by Redis's own clock: the time that answers
// tell never goes back in the order that explains them.
func TestLinearizableByRedisTime(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	f := &linear.Fleet{Operations: deep.Steps(3_000, 100_000), Clients: 16, Seed: deep.Seed(1)}
	for range 3 {
		options := asking(server)
		options.Timeout = time.Minute
		f.Stores = append(f.Stores, open(t, redisstore.WithoutRenewal(options))) // nobody hears when a lease is renewed
	}
	f.Run(t).Check(t)
}
