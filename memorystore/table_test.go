package memorystore

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestTable: after any operations, a table has what a map has. The searches for many IDs begin at the
// same slots, also at the last ones.
func TestTable(t *testing.T) {
	type entry struct {
		value   int
		expires int64
	}
	random := rand.New(rand.NewPCG(1, 2))
	var kept table[int]
	model, now, largest := make(map[stateID]entry), int64(0), 0
	check := func(step int) {
		t.Helper()
		for id, want := range model {
			if s := kept.get(id); s == nil || s.value != want.value || s.expires != want.expires {
				t.Fatalf("step %d: %x: got %+v, want %+v", step, id, s, want)
			}
		}
		live := maps.Clone(model)
		maps.DeleteFunc(live, func(_ stateID, e entry) bool { return e.expires <= now })
		for _, s := range kept.slots {
			if e, ok := live[s.id]; s.id[0] != 0 && s.expires > now && (!ok || e.value != s.value) {
				t.Fatalf("step %d: %x has %d, want %+v", step, s.id, s.value, e)
			}
			delete(live, s.id)
		}
		if len(live) != 0 || kept.n != len(model) {
			t.Fatalf("step %d: %d of %d entries are missing, %d are counted", step, len(live), len(model), kept.n)
		}
	}
	for step := range deep.Steps(20_000, 2_000_000) {
		// Growth and decay in turns. The IDs select a sixteenth of the slots, at both ends.
		id := stateID{uint64(random.IntN(16)-8)<<57 | 1, uint64(random.IntN(50))}
		life := int64(1 + random.IntN(200))
		if step/5000%2 == 1 {
			life = 1
		}
		switch n := random.IntN(100); {
		case n < 60:
			kept.put(id, step, now+life)
			model[id] = entry{step, now + life}
		case n < 80:
			kept.delete(id)
			delete(model, id)
		case n < 98:
			now++
			if got, want := kept.value(id), model[id].value; got != want {
				t.Fatalf("step %d: got %d, want %d", step, got, want)
			}
		default:
			kept.drop(now)
			maps.DeleteFunc(model, func(_ stateID, e entry) bool { return e.expires <= now })
			check(step)
		}
		largest = max(largest, len(kept.slots))
	}
	kept.drop(now + 1000)
	clear(model)
	check(-1)
	if largest < 256 || len(kept.slots) >= largest {
		t.Errorf("%d slots at most and %d when all had expired", largest, len(kept.slots))
	}
}

// TestLayout: a request's shard and state are in few cache lines.
func TestLayout(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the sizes are those of 64 bits")
	}
	var s Store
	if size, at := unsafe.Sizeof(s.shards[0]), unsafe.Offsetof(s.shards); size%64 != 0 || at%64 != 0 {
		t.Errorf("a shard has %d bytes, the first is at %d", size, at)
	}
	var numbers shard
	if size := unsafe.Sizeof(*numbers.numbers.get(stateID{})); size != 48 {
		t.Errorf("the slot of a number has %d bytes", size)
	}
}

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
