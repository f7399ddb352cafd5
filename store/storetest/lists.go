package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// list is a list of the store in pages.
type list func(rule *store.Rule, cursor string) ([]store.Listed, string, error)

// overrideList lists overrides.
func (r *ruled) overrideList(rule *store.Rule, cursor string) ([]store.Listed, string, error) {
	return r.Overrides(r.Context(), rule, cursor, 3)
}

// banList lists bans.
func (r *ruled) banList(rule *store.Rule, cursor string) ([]store.Listed, string, error) {
	return r.Bans(r.Context(), rule, r.with.Ban, cursor, 3)
}

// listed returns what is on all pages of a list.
func (r *ruled) listed(of list, rule *store.Rule) map[string]store.Override {
	r.Helper()
	found := make(map[string]store.Override)
	for cursor, pages := "", 0; ; pages++ {
		keys, next, err := of(rule, cursor)
		if err != nil || pages > 10_000 {
			r.Fatal(pages, err)
		}
		for _, k := range keys {
			found[k.Key] = k.Override
		}
		if cursor = next; cursor == "" {
			return found
		}
	}
}

// lists tests the lists of overrides and bans, if the store keeps overrides.
func lists(b *bench) {
	none := per(0, time.Hour)
	rule, other := Rule(b, "zone [a]*", "fixed_window", none), Rule(b, "zone a", "fixed_window", none)
	r := b.ruled(rule, &store.Ban{For: time.Minute, After: 2, Within: time.Minute})
	for _, cursor := range []string{"x", "-1", "1-"} {
		for _, list := range []list{r.overrideList, r.banList} {
			if _, _, err := list(rule, cursor); !errors.Is(err, store.ErrCursor) {
				b.Errorf("the cursor %q: %v", cursor, err)
			}
		}
	}
	want := make(map[string]store.Override)
	for i := range 20 {
		key := fmt.Sprintf("%d: *{}%%\xff", i)
		if i == 0 {
			key = ""
		}
		want[key] = store.Override{Kind: store.KindExempt, Note: key[:min(len(key), 2)], For: time.Hour}
		r.set(store.Selector{Key: key}, want[key])
	}
	if got := r.listed(r.overrideList, rule); !maps.Equal(got, want) {
		b.Errorf("the overrides are %v, want %v", got, want)
	}
	equal(b, "overrides of another zone", len(r.listed(r.overrideList, other)), 0)
	b.wait(time.Hour)
	equal(b, "overrides that have ended", len(r.listed(r.overrideList, rule)), 0)

	for _, key := range []string{"a", "b", "once"} {
		b.takeWith(rule, key, 1, r.with)
	}
	b.wait(time.Second)
	b.takeWith(rule, "a", 1, r.with)
	b.takeWith(rule, "b", 1, r.with)
	b.wait(10 * time.Second)
	bans := r.listed(r.banList, rule)
	equal(b, "the bans", strings.Join(slices.Sorted(maps.Keys(bans)), " "), "a b")
	equal(b, "a ban", bans["a"], store.Override{Kind: store.KindBanned, For: 50 * time.Second})
	equal(b, "bans of another zone", len(r.listed(r.banList, other)), 0)
	r.unban(store.Selector{Key: "a"})
	equal(b, "after an unban", len(r.listed(r.banList, rule)), 1)
	b.wait(50 * time.Second)
	equal(b, "bans that have ended", len(r.listed(r.banList, rule)), 0)
}
