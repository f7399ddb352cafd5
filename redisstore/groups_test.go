package redisstore_test

import (
	"context"
	"net/netip"
	"strings"
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

// TestGroups: what one process sets for a group, the others learn as they learn of networks, also if its value is hostile. It
// ends by Redis's clock, is forgotten if Redis loses it, and a process that comes later knows all.
func TestGroups(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := open(t, redisstore.Options{Address: server.Addr()}), open(t, redisstore.Options{Address: server.Addr()})
	b.Beat()
	rule, ctx := storetest.Rule(t, "a zone/1", "token_bucket", algorithms.Limit{Events: 10, Window: time.Minute}), context.Background()
	group := func(value string) store.Group {
		return store.Group{By: "{http.vars.ja4}", Value: value}
	}
	set := func(value string, o store.Override) {
		t.Helper()
		if err := a.SetGroup(ctx, rule, group(value), o); err != nil {
			t.Fatal(err)
		}
	}
	knows := func(s *redisstore.Store, value string, want store.Kind) {
		t.Helper()
		patient.Until(t, "all know of a change", func() bool {
			is := store.KindNone
			if n := s.Networks(rule).FindGroup(networkKey, group(value)); n != nil {
				is = n.Override.Kind
			}
			return is == want
		})
	}
	hostile := "\x00\xff{}/ %41\r\n" + strings.Repeat("\xf0", store.MaxGroup-11)
	set(hostile, store.Override{Kind: store.KindBanned, Note: "attack"})
	b.Beat()
	knows(b, hostile, store.KindBanned)
	set("t13d", store.Override{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 3}})
	knows(b, "t13d", store.KindLimit)
	if n := b.Networks(rule).GetGroup(group("t13d")); n.Algorithm != "token_bucket" || n.Override.Limit.Events != 3 {
		t.Errorf("got %+v", n)
	}
	if err := a.SetNetwork(ctx, rule, netip.MustParsePrefix("203.0.113.7/32"), store.Override{}); err != nil {
		t.Fatal(err)
	}
	knows(b, "t13d", store.KindNone) // the key has an override of its own
	if err := a.ClearNetwork(ctx, rule, netip.MustParsePrefix("203.0.113.7/32")); err != nil {
		t.Fatal(err)
	}
	knows(b, "t13d", store.KindLimit)
	set("short", store.Override{Kind: store.KindExempt, For: time.Second})
	knows(a, "short", store.KindNone) // after the second

	c := open(t, redisstore.Options{Address: server.Addr()})
	c.Beat()
	knows(c, hostile, store.KindBanned)
	if err := a.ClearGroup(ctx, rule, group(hostile)); err != nil {
		t.Fatal(err)
	}
	knows(b, hostile, store.KindNone)
	knows(c, hostile, store.KindNone)
	knows(c, "t13d", store.KindLimit)
	if err := server.Admin().FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	knows(b, "t13d", store.KindNone)
	knows(a, "t13d", store.KindNone)
}

// TestGroupsWithLoans: processes that hold parts of a limit learn of the first group as they learn of changes of keys.
func TestGroupsWithLoans(t *testing.T) {
	t.Parallel()
	f := startLent(t, "token_bucket", &store.KeyRules{Overrides: true})
	bot := store.Group{By: "{http.request.header.User-Agent}", Value: "bot"}
	if err := f.stores[0].SetGroup(t.Context(), f.check.Rule, bot, store.Override{Kind: store.KindBanned}); err != nil {
		t.Fatal(err)
	}
	patient.Until(t, "the other one knows", func() bool { return f.stores[1].Networks(f.check.Rule).FindGroup(networkKey, bot) != nil })
}

// TestGroupsBesideEarlierVersions: what an earlier or a later version has written among networks, and what is damaged, has no
// effect on the rest.
func TestGroupsBesideEarlierVersions(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, client := open(t, redisstore.Options{Address: server.Addr()}), server.Admin()
	rule, ctx := storetest.Rule(t, "z", "token_bucket", algorithms.Limit{Events: 10, Window: time.Minute}), context.Background()
	good := store.Group{By: "{x}", Value: "good"}
	for _, of := range []store.Group{good, {By: "{x}", Value: "bad"}} {
		if err := s.SetGroup(ctx, rule, of, store.Override{Kind: store.KindBanned}); err != nil {
			t.Fatal(err)
		}
	}
	names, err := client.Keys(ctx, "*bad").Result()
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	client.Set(ctx, names[0], "damaged", 0)
	sets, err := client.Keys(ctx, "*networks*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sets {
		if client.Type(ctx, name).Val() == "zset" {
			for i, other := range []string{"z/group/x", "z/group//y", "z/tribe/x/y", "z/group/%zz/y"} {
				client.ZAdd(ctx, name, redis.Z{Score: float64(time.Now().Add(time.Minute).UnixMicro() + int64(i)), Member: other})
			}
		}
	}
	late := open(t, redisstore.Options{Address: server.Addr()})
	late.Beat()
	known := 0
	for n := range late.Networks(rule).AllGroups() {
		if known++; n.Group != good {
			t.Errorf("group %q has an effect", n.Group)
		}
	}
	if known != 1 {
		t.Errorf("%d groups are known, want 1", known)
	}
}
