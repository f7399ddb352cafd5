package memorystore

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// brokenOnce fails to change a network once.
type brokenOnce struct {
	*Store
	failed bool
}

var errBroken = errors.New("broken")

func (b *brokenOnce) SetRule(ctx context.Context, rule *store.Rule, of store.Selector, to store.Override) error {
	if !b.failed {
		b.failed = true
		return errBroken
	}
	return b.Store.SetRule(ctx, rule, of, to)
}

// TestUnbanAgain: an address was unbanned, and the store failed before the networks around it could decide about it again. Unbanned
// once more, they can.
func TestUnbanAgain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rule, err := store.NewRule("z", algorithms.FixedWindow{}, algorithms.Limit{Events: 5, Window: time.Hour}, 0)
	if err != nil {
		t.Fatal(err)
	}
	around := store.Selector{Network: netip.MustParsePrefix("192.0.2.0/24")}
	of := store.Selector{Key: "192.0.2.1", Network: netip.MustParsePrefix("192.0.2.1/32")}
	banned := store.Override{Kind: store.KindBanned}
	if err := s.SetRule(ctx, rule, around, banned); err != nil {
		t.Fatal(err)
	}
	decides := func() bool { n := s.Networks(rule).Find(of.Network); return n != nil && n.Prefix == around.Network }
	if !decides() {
		t.Fatal("the network does not decide about its address")
	}
	if err := s.SetRule(ctx, rule, of, banned); err != nil || decides() {
		t.Fatal("the network decides about an address with an override of its own", err)
	}
	broken := &brokenOnce{Store: s}
	unban := func() error {
		return of.Unban(ctx, broken, rule, func() error { return s.Unban(ctx, rule, store.Selector{Key: of.Key}) })
	}
	if err := unban(); !errors.Is(err, errBroken) || decides() {
		t.Fatal(err, decides())
	}
	if err := unban(); err != nil || !decides() {
		t.Errorf("after it was unbanned again, the network decides: %v (%v)", decides(), err)
	}
}
