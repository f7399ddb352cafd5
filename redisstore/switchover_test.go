//go:build deep

package redisstore_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// switchover is a set-up in which Sentinels make another server the master although the master is well.
type switchover struct {
	name     string
	replicas int   // min-replicas-to-write
	before   []any // a command for the master
}

// TestSwitchoverLoses measures what the old master still charges when there is a new one. These charges are lost. The
// Sentinels look as rarely as they do by default: they notice within a second that the new master is one, and
// are asked every second. So on an idle machine up to two seconds are lost.
func TestSwitchoverLoses(t *testing.T) {
	patient.BesideOthers(t)
	for _, c := range []switchover{
		{name: "plain"},
		{name: "replicas", replicas: 1},
		{name: "pause", before: []any{"client", "pause", 10_000, "write"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := redistest.StartSentinel(t, nil, nil)
			c.measure(t, g)
		})
	}
}

// measure switches while many clients come, each of which uses up its limit after that.
func (c *switchover) measure(t *testing.T, g *redistest.Sentinel) {
	const clients, limit, rate = 40, 150, 500 // charges a second of all clients
	for _, sentinel := range g.Sentinels() {
		if err := sentinel.Admin().Do(t.Context(), "sentinel", "debug", "info-period", 10_000, "publish-period", 2000, "ask-period", 1000).Err(); err != nil {
			t.Skip(err) // before Redis 7.0 these are as they are
		}
	}
	for _, server := range g.Servers() {
		server.Configure("min-replicas-to-write", strconv.Itoa(c.replicas))
	}
	options := redisstore.Options{MasterName: redistest.MasterName, Addresses: g.Addrs(), Timeout: time.Second}
	l := algorithms.Limit{Events: limit, Window: 1000 * time.Hour}
	rule := storetest.Rule(t, "zone", "fixed_window", l)
	stores := []*redisstore.Store{open(t, options), open(t, options)}
	var admitted, refused, failed atomic.Int64
	stop, done := make(chan struct{}), sync.WaitGroup{}
	for client := range clients {
		done.Go(func() {
			tick := time.NewTicker(clients * time.Second / rate)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				switch d, err := try(stores[i%2], rule, strconv.Itoa(client), 1); {
				case err != nil:
					failed.Add(1)
				case d.Allowed:
					admitted.Add(1)
				default:
					refused.Add(1)
				}
			}
		})
	}
	defer done.Wait()
	defer close(stop)
	patient.Until(t, "charges before the switch", func() bool { return admitted.Load() > 2*rate })
	if c.before != nil {
		if err := g.Master().Admin().Do(context.Background(), c.before...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	g.Failover()
	patient.Until(t, "the limits to be used up", func() bool { return refused.Load() > 2*rate })
	lost := max(0, admitted.Load()-clients*limit)
	seconds := time.Duration(lost) * time.Second / rate
	t.Logf("%s: %d of %d charges lost, those of %v; %d not decided", c.name, lost, clients*limit, seconds, failed.Load())
	if lost > clients*limit {
		t.Errorf("%d lost, which is more than the limits once more", lost)
	}
	patient.Soon(t, "the switch", seconds, 2500*time.Millisecond)
}
