package zone

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// brokenOnce fails to clear a network once.
type brokenOnce struct {
	store.Networker
	failed bool
}

var errBroken = errors.New("broken")

func (b *brokenOnce) ClearNetwork(ctx context.Context, rule *store.Rule, network netip.Prefix) error {
	if !b.failed {
		b.failed = true
		return errBroken
	}
	return b.Networker.ClearNetwork(ctx, rule, network)
}

// TestUnbanAgain: an address was unbanned, and the store failed before the networks around it could decide about it again. Unbanned
// once more, they can.
func TestUnbanAgain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := memorystore.New(memorystore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rule, err := store.NewRule("z", algorithms.FixedWindow{}, algorithms.Limit{Events: 5, Window: time.Hour}, 0)
	if err != nil {
		t.Fatal(err)
	}
	const key = "192.0.2.1"
	address, around := netip.MustParsePrefix(key+"/32"), netip.MustParsePrefix("192.0.2.0/24")
	if err := s.SetNetwork(ctx, rule, around, store.Override{Kind: store.KindBanned}); err != nil {
		t.Fatal(err)
	}
	o := OfAddress{Overrider: s, Networks: &brokenOnce{Networker: s}, Key: address}
	decides := func() bool { n := s.Networks(rule).Find(address); return n != nil && n.Prefix == around }
	if !decides() {
		t.Fatal("the network does not decide about its address")
	}
	if err := o.Set(ctx, rule, key, store.Override{Kind: store.KindBanned}); err != nil || decides() {
		t.Fatal("the network decides about an address with an override of its own", err)
	}
	if err := o.Unban(ctx, rule, key); !errors.Is(err, errBroken) || decides() {
		t.Fatal(err, decides())
	}
	if err := o.Unban(ctx, rule, key); err != nil || !decides() {
		t.Errorf("after it was unbanned again, the network decides: %v (%v)", decides(), err)
	}
}
