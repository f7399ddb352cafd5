package redisstore_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// change sets another override for a key, now and then.
func (p *pair) change(t *rapid.T, c *store.Check) {
	ctx := context.Background()
	if rapid.IntRange(0, 5).Draw(t, "leave it") > 0 {
		return
	}
	var in [2]store.Override
	override := store.Override{Kind: store.Kind(rapid.IntRange(0, 4).Draw(t, "kind"))}
	if rapid.Bool().Draw(t, "ends") {
		override.For = time.Duration(rapid.Int64Range(1e6, 1e8).Draw(t, "for")) * time.Microsecond
	}
	if override.Kind == store.KindLimit {
		if override.Limit = drawUnrenewed(t, c.Rule.Algorithm().Name()); override.Limit.Calendar != c.Rule.Limit().Calendar {
			override.Limit = algorithms.Limit{Events: override.Limit.Events}
		} else if override.Limit.Calendar != 0 {
			override.Limit.Location = nil
		}
	}
	for i, s := range [2]store.Overrider{p.memory, p.redis} {
		var err error
		if of := (store.Selector{Key: c.Key}); override.Kind > store.KindLimit {
			err = s.Unban(ctx, c.Rule, of)
		} else {
			if _, bad := c.Rule.PrepareOverride(override); bad != nil && override.Kind != store.KindNone {
				return // the limit does not go with the rule
			}
			err = s.SetRule(ctx, c.Rule, of, override)
		}
		if err == nil {
			in[i], err = s.GetRule(ctx, c.Rule, store.Selector{Key: c.Key})
		}
		if err != nil {
			t.Fatalf("%v: %v", override, err)
		}
	}
	if in[0] != in[1] {
		t.Fatalf("%+v reads %+v in memory and %+v in Redis", override, in[0], in[1])
	}
}

func drawKeyRules(t *rapid.T) *store.KeyRules {
	seconds := func(name string, most int64) time.Duration {
		return time.Duration(rapid.Int64Range(1e6, most).Draw(t, name)) * time.Microsecond
	}
	s := &store.KeyRules{Overrides: rapid.Bool().Draw(t, "overrides")}
	if rapid.IntRange(0, 4).Draw(t, "bans") > 0 {
		s.Ban = &store.Ban{For: seconds("for", 1e8), After: rapid.Int64Range(1, 5).Draw(t, "after"), Within: seconds("within", 1e9)}
		if rapid.Bool().Draw(t, "escalates") {
			s.Ban.UpTo = s.Ban.For + seconds("more", 1e9)
		}
	}
	return s
}

// banning returns a check of a zone that has room for one request, and bans keys that ask again.
func banning(t testing.TB, after int64) store.Check {
	return store.Check{
		Rule: storetest.Rule(t, "z", "fixed_window", algorithms.Limit{Events: 1, Window: time.Hour, Align: algorithms.AlignFirstRequest}), Key: "client", Cost: 1,
		KeyRules: &store.KeyRules{Ban: &store.Ban{For: time.Hour, After: after, Within: 10 * time.Minute}},
	}
}

// TestKeyRulesExpire: what is kept for a key expires when it is worth nothing.
func TestKeyRulesExpire(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s := open(t, asking(server))
	admin, ctx := server.Admin(), context.Background()
	check := banning(t, 3)
	within := func(what string, least, most time.Duration) {
		t.Helper()
		key, err := admin.Keys(ctx, server.Prefix()+":*:"+what+".1").Result()
		if err != nil || len(key) != 1 {
			t.Fatalf("%s: %v (%v)", what, key, err)
		}
		if topology.SlotOf(key[0]) != topology.SlotOf(s.Key(check.Rule, check.Key)) {
			t.Errorf("%s has another slot than the state", key[0])
		}
		if ttl := admin.PTTL(ctx, key[0]).Val(); ttl < least || ttl > most {
			t.Errorf("%s: %v, want from %v to %v", what, ttl, least, most)
		}
	}
	ask(t, s, check)
	if n := len(admin.Keys(ctx, server.Prefix()+":*").Val()); n > 2 { // the state, and the set of processes
		t.Errorf("%d keys before anything was refused", n)
	}
	ask(t, s, check)
	within("ban", 9*time.Minute, 11*time.Minute)
	ask(t, s, check)
	ask(t, s, check)
	within("ban", 59*time.Minute, 65*time.Minute)
	must(t, s.SetRule(ctx, check.Rule, store.Selector{Key: check.Key}, store.Override{Kind: store.KindExempt, For: time.Minute}))
	within("setting", 58*time.Second, 62*time.Second)
}

// TestDamagedKeyRules: anything that is neither an override nor a ban counts as none.
func TestDamagedKeyRules(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s := open(t, asking(server))
	admin, ctx := server.Admin(), context.Background()
	check := banning(t, 1000)
	check.Rule = storetest.Rule(t, "z", "fixed_window", algorithms.Limit{Events: 1000, Window: 1000 * time.Hour})
	check.KeyRules.Overrides = true
	keys := [2]string{server.Prefix() + ":{client}:z:setting.1", server.Prefix() + ":{client}:z:ban.1"}
	for i, value := range []string{
		"x", strings.Repeat("x", 24), "\x03", "\x03" + strings.Repeat("\x00", 8), "\x03" + strings.Repeat("\x00", 8) + "fixed_window",
		"\x03" + strings.Repeat("\x00", 8) + "fixed_window\x00\x01", strings.Repeat("\xff", 24), strings.Repeat("\x00", 24), strings.Repeat("x", 1000),
	} {
		for _, key := range keys {
			must(t, admin.Set(ctx, key, value, 0).Err())
		}
		if d := ask(t, s, check)[0]; !d.Allowed || d.Exempt || d.Override != "" || d.Remaining != 999-int64(i) {
			t.Errorf("%q: %+v", value, d)
		}
	}
	for _, key := range keys {
		admin.Del(ctx, key)
		must(t, admin.RPush(ctx, key, "x").Err())
	}
	if d := ask(t, s, check)[0]; !d.Allowed {
		t.Errorf("lists: %+v", d)
	}
	if _, err := s.GetRule(ctx, check.Rule, store.Selector{Key: check.Key}); err == nil || !redis.HasErrorPrefix(err, "WRONGTYPE") && !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("the override is a list, and reading it says %v", err)
	}
}

// TestListsTakeFewCalls: a list of hundreds of keys is read with a few calls. TestCluster has it of a Cluster.
func TestListsTakeFewCalls(t *testing.T) {
	t.Parallel()
	listsTakeFewCalls(t, open(t, at(redistest.Start(t))), func() {}) // a list goes over all keys of a server, also those of other tests
}

func listsTakeFewCalls(t *testing.T, s *redisstore.Store, meanwhile func()) {
	s.Silence()
	rule := storetest.Rule(t, "listed", "fixed_window", algorithms.Limit{Events: 10, Window: time.Minute})
	want := make(map[string]store.Override)
	for i := range 600 {
		key := fmt.Sprintf("key %d", i)
		want[key] = store.Override{Kind: store.KindExempt, Note: key}
		must(t, s.SetRule(t.Context(), rule, store.Selector{Key: key}, want[key]))
	}
	meanwhile()
	before, got := s.Stats().Calls, make(map[string]store.Override)
	for cursor, more := "", true; more; more = cursor != "" {
		keys, next, err := s.Overrides(t.Context(), rule, cursor, 1000)
		must(t, err)
		for _, k := range keys {
			got[k.Key] = k.Override
		}
		cursor = next
	}
	if calls := s.Stats().Calls - before; calls > 60 {
		t.Errorf("%d calls for %d keys", calls, len(got))
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d keys are listed, want %d", len(got), len(want))
	}
}

// TestListOfADamagedOverride: an override that is damaged is not listed, and a list fails if what is there is no text.
func TestListOfADamagedOverride(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, at(server))
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 10, Window: time.Minute})
	must(t, s.SetRule(t.Context(), rule, store.Selector{Key: "well"}, store.Override{Kind: store.KindExempt}))
	must(t, s.SetRule(t.Context(), rule, store.Selector{Key: "damaged"}, store.Override{Kind: store.KindExempt}))
	var damaged string
	for _, name := range server.Admin().Keys(t.Context(), server.Prefix()+":*").Val() {
		if strings.Contains(name, "{damaged}") {
			damaged = name
		}
	}
	must(t, server.Admin().Set(t.Context(), damaged, "x", 0).Err())
	if keys, _, err := s.Overrides(t.Context(), rule, "", 10); err != nil || len(keys) != 1 || keys[0].Key != "well" {
		t.Errorf("%v, %v", keys, err)
	}
	must(t, server.Admin().Del(t.Context(), damaged).Err())
	must(t, server.Admin().LPush(t.Context(), damaged, "x").Err())
	if keys, _, err := s.Overrides(t.Context(), rule, "", 10); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("%v, %v", keys, err)
	}
}

var networkKey = netip.MustParsePrefix("203.0.113.7/32")

// kindAt is what a store knows of the networks around a key.
func kindAt(s *redisstore.Store, rule *store.Rule, key netip.Prefix) store.Kind {
	if n := s.Networks(rule).Find(key); n != nil {
		return n.Override.Kind
	}
	return store.KindNone
}

// TestNetworks: what one process sets for a network, the others learn with the next heartbeat. It ends by Redis's clock, is
// forgotten if Redis loses it, and is known to a process that comes later, and to one that could not read all of them before.
func TestNetworks(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	a, b := open(t, at(server)), open(t, at(server))
	b.Beat()
	rule, ctx := storetest.Rule(t, "a zone/1", "token_bucket", algorithms.Limit{Events: 10, Window: time.Minute}), context.Background()
	set := func(network string, o store.Override) {
		t.Helper()
		must(t, a.SetRule(ctx, rule, store.Selector{Network: netip.MustParsePrefix(network)}, o))
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
	must(t, a.SetRule(ctx, rule, address, store.Override{Kind: store.KindExempt}))
	knows(b, store.KindNone)
	must(t, a.SetRule(ctx, rule, address, store.Override{}))
	knows(b, store.KindLimit)
	set("203.0.113.0/25", store.Override{Kind: store.KindExempt, For: time.Second})
	knows(a, store.KindLimit) // after the second

	for i := range 1200 {
		set(fmt.Sprintf("10.%d.%d.0/24", i/256, i%256), store.Override{Kind: store.KindBanned})
	}
	last := server.Admin().Keys(ctx, server.Prefix()+":*10.4.175.0*").Val()[0]
	must(t, server.Admin().Del(ctx, last).Err())
	must(t, server.Admin().LPush(ctx, last, "no text").Err())
	b.Beat() // which fails on the last page
	must(t, server.Admin().Del(ctx, last).Err())
	for _, s := range []*redisstore.Store{b, open(t, at(server))} {
		s.Beat()
		if known := slices.Collect(s.Networks(rule).All()); len(known) != 1201 {
			t.Errorf("a process knows %d networks, want 1201", len(known))
		}
	}
	lose := func() {
		t.Helper()
		all := server.Admin().Keys(ctx, server.Prefix()+":*").Val()
		must(t, server.Admin().Del(ctx, all...).Err())
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
		must(t, s.SetRule(ctx, rule, store.Selector{Network: of}, store.Override{Kind: store.KindBanned}))
	}
	names, err := client.Keys(ctx, server.Prefix()+":*198.51.100.0*").Result()
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	client.Set(ctx, names[0], "damaged", 0)
	sets, err := client.Keys(ctx, server.Prefix()+":*networks*").Result()
	must(t, err)
	for _, name := range sets {
		if client.Type(ctx, name).Val() == "zset" {
			for i, other := range []string{"z/", "z/tribe/x/y", "z/%zz", "%zz/192.0.2.0%2F24", "z/192.0.2.0%2F99"} {
				client.ZAdd(ctx, name, redis.Z{Score: float64(time.Now().Add(time.Minute).UnixMicro() + int64(i)), Member: other})
			}
		}
	}
	late := open(t, at(server))
	late.Beat()
	if known := slices.Collect(late.Networks(rule).All()); len(known) != 1 || known[0].Prefix != good {
		t.Errorf("%d networks are known, want %v", len(known), good)
	}
}
