//go:build deep

package redisstore_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestNetworksWithLoans: processes that hold parts of a limit learn of the first network as they learn of changes of keys.
func TestNetworksWithLoans(t *testing.T) {
	t.Parallel()
	f := startLent(t, "token_bucket", &store.KeyRules{Overrides: true})
	if err := f.stores[0].SetNetwork(t.Context(), f.check.Rule, networkKey, store.Override{Kind: store.KindBanned}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	patient.Until(t, "the other one knows", func() bool { return kindAt(f.stores[1], f.check.Rule, networkKey) == store.KindBanned })
	if took := time.Since(began); took > time.Second && patient.Idle() {
		t.Errorf("known after %v", took)
	}
}
