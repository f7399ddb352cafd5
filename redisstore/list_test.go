package redisstore_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestListsTakeFewCalls: a list of hundreds of keys is read with a few calls, also while a slot of a Cluster moves.
func TestListsTakeFewCalls(t *testing.T) {
	patient.BesideOthers(t)
	c := redistest.StartCluster(t, 3, 0)
	for name, options := range map[string]redisstore.Options{
		"one Redis": {Address: redistest.Start(t).Addr()},
		"a Cluster": {Mode: redisstore.ModeCluster, Addresses: c.Addrs()},
	} {
		s := open(t, options)
		s.Silence()
		rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 10, Window: time.Minute})
		want := make(map[string]store.Override)
		for i := range 600 {
			key := fmt.Sprintf("key %d", i)
			want[key] = store.Override{Kind: store.KindExempt, Note: key}
			if err := s.Set(t.Context(), rule, key, want[key]); err != nil {
				t.Fatal(err)
			}
		}
		// Until the slot has moved, the node that is to have it knows the key, and sends a call that comes to it first back.
		if options.Mode == redisstore.ModeCluster {
			from, to := c.MasterOf("{key%206}"), c.Nodes()[0]
			if from == to {
				to = c.Nodes()[1]
			}
			c.StartMove(int(topology.SlotOf("{key%206}")), from, to).MoveKeys()
		}
		before, got := s.Stats().Calls, make(map[string]store.Override)
		for cursor, more := "", true; more; more = cursor != "" {
			keys, next, err := s.Overrides(t.Context(), rule, cursor, 1000)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, k := range keys {
				got[k.Key] = k.Override
			}
			cursor = next
		}
		if calls := s.Stats().Calls - before; calls > 60 {
			t.Errorf("%s: %d calls for %d keys", name, calls, len(got))
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %d keys are listed, want %d", name, len(got), len(want))
		}
	}
}

// TestListOfADamagedOverride: an override that is damaged is not listed, and a list fails if what is there is no text.
func TestListOfADamagedOverride(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr()})
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 10, Window: time.Minute})
	if err := s.Set(t.Context(), rule, "well", store.Override{Kind: store.KindExempt}); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(t.Context(), rule, "damaged", store.Override{Kind: store.KindExempt}); err != nil {
		t.Fatal(err)
	}
	var damaged string
	for _, name := range server.Admin().Keys(t.Context(), "*").Val() {
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
