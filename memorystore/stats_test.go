package memorystore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestCountKeys: keys are counted by zone, whatever the kind of their state, until they
// expire.
func TestCountKeys(t *testing.T) {
	s, setClock := openWith(t, memorystore.Options{})
	var rules []*store.Rule
	for i, name := range []string{"token_bucket", "sliding_window_log", "fixed_window"} {
		rule := storetest.Rule(t, fmt.Sprint("zone", i), name, storetest.Limit(name, 1000, time.Hour))
		rules = append(rules, rule)
		for key := range 100 * (i + 1) {
			take(t, s, rule, fmt.Sprint(key))
		}
	}
	rules = append(rules, storetest.Rule(t, "unused", "fixed_window", storetest.Limit("fixed_window", 1000, time.Hour)))
	if got := s.CountKeys(rules); !slices.Equal(got, []int64{100, 200, 300, 0}) {
		t.Errorf("got %v", got)
	}
	setClock(storetest.Start + (2 * time.Hour).Microseconds())
	if got := s.CountKeys(rules); !slices.Equal(got, []int64{0, 0, 0, 0}) {
		t.Errorf("after two hours: %v", got)
	}
}
