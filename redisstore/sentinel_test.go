//go:build deep

package redisstore_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestSentinelSplit: a master that hung while another one took over, and comes back, admits
// nothing more. A Sentinel that does not know the new master is outvoted by two others.
func TestSentinelSplit(t *testing.T) {
	t.Parallel()
	g := redistest.StartSentinel(t, nil, nil)
	ctx := context.Background()
	s := open(t, redisstore.Options{MasterName: redistest.MasterName, Addresses: g.Addrs(), Timeout: 2 * time.Second, DenyCache: -1})
	rule := storetest.Rule(t, "z", "fixed_window", algorithms.Limit{Events: 20, Window: 1000 * time.Hour})
	check := []store.Check{{Rule: rule, Key: "k", Cost: 1}}
	d := make([]algorithms.Decision, 1)
	for range 10 {
		if err := s.Take(ctx, check, d); err != nil || !d[0].Allowed {
			t.Fatalf("%v, %+v", err, d)
		}
	}
	before, behind := g.Master(), g.Sentinels()[2]
	if n, err := before.Admin().Do(ctx, "wait", 1, 0).Int(); err != nil || n < 1 {
		t.Fatalf("%d replicas have all: %v", n, err)
	}
	behind.Freeze()
	defer behind.Thaw()
	before.Freeze()
	defer before.Thaw()
	says := func(sentinel *redistest.Server) string {
		address, err := sentinel.Admin().Do(ctx, "sentinel", "get-master-addr-by-name", redistest.MasterName).StringSlice()
		if err != nil {
			return ""
		}
		return "127.0.0.1:" + address[1]
	}
	for _, sentinel := range g.Sentinels()[:2] {
		patient.Until(t, "another master", func() bool { a := says(sentinel); return a != "" && a != before.Addr() })
	}
	admitted := 0
	patient.Until(t, "the new master to be used", func() bool {
		err := s.Take(ctx, check, d)
		if err == nil && d[0].Allowed {
			admitted++
		}
		return err == nil
	})
	before.Thaw()
	for _, sentinel := range g.Sentinels()[:2] {
		sentinel.Freeze()
		defer sentinel.Thaw()
	}
	behind.Thaw()
	own, first, refused := 0, 0, false
	patient.Until(t, "the limit to be used up, and the Sentinel that is behind to be asked a few times", func() bool {
		if err := s.Take(ctx, check, d); err == nil && d[0].Allowed {
			admitted++
		} else if err == nil {
			refused = true
		}
		info, err := behind.Admin().InfoMap(ctx, "stats").Result()
		if err != nil {
			return false
		}
		own++
		commands, _ := strconv.Atoi(info["Stats"]["total_commands_processed"])
		if first == 0 {
			first = commands
		}
		return refused && commands-first-own > 8 // two for each time
	})
	if admitted != 10 {
		t.Errorf("%d admitted after a failover, and 10 before, of 20", admitted)
	}
}
