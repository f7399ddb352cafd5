package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
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
	if err := s.SetRule(ctx, check.Rule, store.Selector{Key: check.Key}, store.Override{Kind: store.KindExempt, For: time.Minute}); err != nil {
		t.Fatal(err)
	}
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
			if err := admin.Set(ctx, key, value, 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if d := ask(t, s, check)[0]; !d.Allowed || d.Exempt || d.Override != "" || d.Remaining != 999-int64(i) {
			t.Errorf("%q: %+v", value, d)
		}
	}
	for _, key := range keys {
		admin.Del(ctx, key)
		if err := admin.RPush(ctx, key, "x").Err(); err != nil {
			t.Fatal(err)
		}
	}
	if d := ask(t, s, check)[0]; !d.Allowed {
		t.Errorf("lists: %+v", d)
	}
	if _, err := s.GetRule(ctx, check.Rule, store.Selector{Key: check.Key}); err == nil || !redis.HasErrorPrefix(err, "WRONGTYPE") && !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("the override is a list, and reading it says %v", err)
	}
}
