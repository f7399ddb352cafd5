package redisstore_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

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
		if err := s.SetRule(t.Context(), rule, store.Selector{Key: key}, want[key]); err != nil {
			t.Fatal(err)
		}
	}
	meanwhile()
	before, got := s.Stats().Calls, make(map[string]store.Override)
	for cursor, more := "", true; more; more = cursor != "" {
		keys, next, err := s.Overrides(t.Context(), rule, cursor, 1000)
		if err != nil {
			t.Fatal(err)
		}
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
	if err := s.SetRule(t.Context(), rule, store.Selector{Key: "well"}, store.Override{Kind: store.KindExempt}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetRule(t.Context(), rule, store.Selector{Key: "damaged"}, store.Override{Kind: store.KindExempt}); err != nil {
		t.Fatal(err)
	}
	var damaged string
	for _, name := range server.Admin().Keys(t.Context(), server.Prefix()+":*").Val() {
		if strings.Contains(name, "{damaged}") {
			damaged = name
		}
	}
	if err := server.Admin().Set(t.Context(), damaged, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if keys, _, err := s.Overrides(t.Context(), rule, "", 10); err != nil || len(keys) != 1 || keys[0].Key != "well" {
		t.Errorf("%v, %v", keys, err)
	}
	if err := server.Admin().Del(t.Context(), damaged).Err(); err != nil {
		t.Fatal(err)
	}
	if err := server.Admin().LPush(t.Context(), damaged, "x").Err(); err != nil {
		t.Fatal(err)
	}
	if keys, _, err := s.Overrides(t.Context(), rule, "", 10); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("%v, %v", keys, err)
	}
}
