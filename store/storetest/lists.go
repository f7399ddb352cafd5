package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// lists tests the lists of overrides and bans, if the store keeps overrides.
func lists(t *testing.T, open Open) {
	b := start(t, open)
	overrider := b.overrider(t)
	ctx := context.Background()
	rule, other := Rule(t, "zone [a]*", "fixed_window", per(0, time.Hour)), Rule(t, "zone a", "fixed_window", per(0, time.Hour))
	with := &store.KeyRules{Overrides: true, Ban: &store.Ban{For: time.Minute, After: 2, Within: time.Minute}}
	for _, cursor := range []string{"x", "-1", "1-"} {
		if _, _, err := overrider.Overrides(ctx, rule, cursor, 3); !errors.Is(err, store.ErrCursor) {
			t.Errorf("the cursor %q: %v", cursor, err)
		}
	}
	overrides := func(rule *store.Rule) map[string]store.Override {
		t.Helper()
		return allListed(t, func(cursor string) ([]store.Listed, string, error) {
			return overrider.Overrides(ctx, rule, cursor, 3)
		})
	}
	bans := func(rule *store.Rule) map[string]store.Override {
		t.Helper()
		return allListed(t, func(cursor string) ([]store.Listed, string, error) {
			return overrider.Bans(ctx, rule, with.Ban, cursor, 3)
		})
	}
	want := make(map[string]store.Override)
	for i := range 20 {
		key := fmt.Sprintf("%d: *{}%%\xff", i)
		if i == 0 {
			key = ""
		}
		want[key] = store.Override{Kind: store.KindExempt, Note: key[:min(len(key), 2)], For: time.Hour}
		if err := overrider.SetRule(ctx, rule, store.Selector{Key: key}, want[key]); err != nil {
			t.Fatal(err)
		}
	}
	if got := overrides(rule); !maps.Equal(got, want) {
		t.Errorf("the overrides are %v, want %v", got, want)
	}
	equal(t, "overrides of another zone", len(overrides(other)), 0)
	b.wait(time.Hour)
	equal(t, "overrides that have ended", len(overrides(rule)), 0)

	for _, key := range []string{"a", "b", "once"} {
		b.takeWith(rule, key, 1, with)
	}
	b.wait(time.Second)
	b.takeWith(rule, "a", 1, with)
	b.takeWith(rule, "b", 1, with)
	b.wait(10 * time.Second)
	got := bans(rule)
	if names := strings.Join(slices.Sorted(maps.Keys(got)), " "); names != "a b" || got["a"] != (store.Override{Kind: store.KindBanned, For: 50 * time.Second}) {
		t.Errorf("the bans are %v", got)
	}
	equal(t, "bans of another zone", len(bans(other)), 0)
	if err := overrider.Unban(ctx, rule, store.Selector{Key: "a"}); err != nil {
		t.Fatal(err)
	}
	equal(t, "after an unban", len(bans(rule)), 1)
	b.wait(50 * time.Second)
	equal(t, "bans that have ended", len(bans(rule)), 0)
	if _, _, err := overrider.Bans(ctx, rule, with.Ban, "nonsense", 3); err == nil {
		t.Error("a cursor of another store is accepted")
	}
}

// allListed returns what is on all pages of a list.
func allListed(t *testing.T, page func(cursor string) ([]store.Listed, string, error)) map[string]store.Override {
	t.Helper()
	found := make(map[string]store.Override)
	for cursor, pages := "", 0; ; pages++ {
		keys, next, err := page(cursor)
		if err != nil || pages > 10_000 {
			t.Fatal(pages, err)
		}
		for _, k := range keys {
			found[k.Key] = k.Override
		}
		if cursor = next; cursor == "" {
			return found
		}
	}
}
