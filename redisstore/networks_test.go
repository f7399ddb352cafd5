package redisstore_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

var networkKey = netip.MustParsePrefix("203.0.113.7/32")

// kindAt is what a store knows of the networks around a key.
func kindAt(s *redisstore.Store, rule *store.Rule, key netip.Prefix) store.Kind {
	if n := s.Networks(rule).Find(key); n != nil {
		return n.Override.Kind
	}
	return store.KindNone
}

// TestNetworks: what one process sets for a network, the others learn with the next heartbeat. It ends by Redis's clock, is forgotten if Redis loses it, and a process that comes later knows all.
func TestNetworks(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	a, b := open(t, at(server)), open(t, at(server))
	b.Beat()
	rule, ctx := storetest.Rule(t, "a zone/1", "token_bucket", algorithms.Limit{Events: 10, Window: time.Minute}), context.Background()
	set := func(network string, o store.Override) {
		t.Helper()
		if err := a.SetRule(ctx, rule, store.Selector{Network: netip.MustParsePrefix(network)}, o); err != nil {
			t.Fatal(err)
		}
	}
	knows := func(s *redisstore.Store, want store.Kind) {
		t.Helper()
		s.Beat()
		patient.Until(t, "all know of a change", func() bool { return kindAt(s, rule, networkKey) == want })
	}
	set("203.0.0.0/16", store.Override{Kind: store.KindBanned, Note: "attack"})
	if got := kindAt(a, rule, networkKey); got != store.KindBanned {
		t.Fatalf("the process that has set it knows %v", got)
	}
	b.Beat()
	if got := kindAt(b, rule, networkKey); got != store.KindBanned {
		t.Fatalf("after a heartbeat, the other knows %v", got)
	}
	if n := b.Instances(); n != 1 {
		t.Errorf("%d instances, want the one that has sent a heartbeat", n)
	}
	set("203.0.113.0/24", store.Override{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 3}})
	knows(b, store.KindLimit)
	if n := b.Networks(rule).Find(networkKey); n.Override.Algorithm != "token_bucket" || n.Override.Limit.Events != 3 {
		t.Errorf("got %+v", n)
	}
	address := store.Selector{Key: "203.0.113.7", Network: networkKey}
	if err := a.SetRule(ctx, rule, address, store.Override{Kind: store.KindExempt}); err != nil {
		t.Fatal(err)
	}
	knows(b, store.KindNone)
	if err := a.SetRule(ctx, rule, address, store.Override{}); err != nil {
		t.Fatal(err)
	}
	knows(b, store.KindLimit)
	set("203.0.113.0/25", store.Override{Kind: store.KindExempt, For: time.Second})
	knows(a, store.KindLimit) // after the second

	for i := range 1200 {
		set(fmt.Sprintf("10.%d.%d.0/24", i/256, i%256), store.Override{Kind: store.KindBanned})
	}
	c := open(t, at(server))
	c.Beat()
	known := 0
	for range c.Networks(rule).All() {
		known++
	}
	if known != 1202 {
		t.Errorf("a new process knows %d networks, want 1202", known)
	}
	lose := func() {
		t.Helper()
		all := server.Admin().Keys(ctx, server.Prefix()+":*").Val()
		if err := server.Admin().Del(ctx, all...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	lose()
	knows(b, store.KindNone)
	knows(a, store.KindNone)
	a.Beat() // all is known again
	set("203.0.0.0/16", store.Override{Kind: store.KindBanned})
	lose() // before the next heartbeat
	knows(a, store.KindNone)
}

// TestNetworksBesideOtherVersions: what another version has written among networks, and what is damaged, has no effect on the
// rest.
func TestNetworksBesideOtherVersions(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s, client := open(t, at(server)), server.Admin()
	rule, ctx := storetest.Rule(t, "z", "token_bucket", algorithms.Limit{Events: 10, Window: time.Minute}), context.Background()
	good := netip.MustParsePrefix("192.0.2.0/24")
	for _, of := range []netip.Prefix{good, netip.MustParsePrefix("198.51.100.0/24")} {
		if err := s.SetRule(ctx, rule, store.Selector{Network: of}, store.Override{Kind: store.KindBanned}); err != nil {
			t.Fatal(err)
		}
	}
	names, err := client.Keys(ctx, server.Prefix()+":*198.51.100.0*").Result()
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	client.Set(ctx, names[0], "damaged", 0)
	sets, err := client.Keys(ctx, server.Prefix()+":*networks*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sets {
		if client.Type(ctx, name).Val() == "zset" {
			for i, other := range []string{"z/", "z/tribe/x/y", "z/%zz", "%zz/192.0.2.0%2F24", "z/192.0.2.0%2F99"} {
				client.ZAdd(ctx, name, redis.Z{Score: float64(time.Now().Add(time.Minute).UnixMicro() + int64(i)), Member: other})
			}
		}
	}
	late := open(t, at(server))
	late.Beat()
	known := 0
	for n := range late.Networks(rule).All() {
		if known++; n.Prefix != good {
			t.Errorf("network %v has an effect", n.Prefix)
		}
	}
	if known != 1 {
		t.Errorf("%d networks are known, want 1", known)
	}
}
