package redisstore

import (
	"context"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// All overrides of networks are in one slot, and each process keeps a copy of them, in which requests look. Without any,
// that costs Redis nothing: each heartbeat brings a mark, which another change replaces. Then the process asks for what has changed
// after its own mark.

const (
	// networksPerCall is how many networks a call reads.
	networksPerCall = 500

	// networksUnseen is how long a process may go without a look and still learn only of changes: what is removed is
	// forgotten later.
	networksUnseen = time.Hour
)

// networks has the overrides of networks of all zones.
type networks struct {
	of    *Store
	clock func() time.Time
	began time.Time

	zones sync.Map // *store.Networks by the name of the zone

	looking chan struct{} // has a value while a look is under way; it guards what follows. No mutex: who waits for Redis would stop a test's clock
	known   int64         // the mark up to which all is known
	looked  time.Time     // when
	beaten  int64         // the mark of the last heartbeat at which all was known, plus 1
}

func newNetworks(s *Store, clock func() time.Time) *networks {
	return &networks{of: s, clock: clock, began: clock(), looking: make(chan struct{}, 1)}
}

// now is the clock of all [store.Networks] here, which never goes back.
func (n *networks) now() int64 { return n.clock().Sub(n.began).Microseconds() + 1 }

// Networks implements [store.Overrider].
func (s *operators) Networks(rule *store.Rule) *store.Networks { return s.networks.in(rule.Zone()) }

func (n *networks) in(zone string) *store.Networks {
	if known, ok := n.zones.Load(zone); ok {
		return known.(*store.Networks)
	}
	known, _ := n.zones.LoadOrStore(strings.Clone(zone), store.NewNetworks(n.now))
	return known.(*store.Networks)
}

// writeNetwork writes the override of a network. Nil removes it.
func (s *operators) writeNetwork(ctx context.Context, rule *store.Rule, of netip.Prefix, to *store.PreparedOverride) error {
	args := []any{store.Escape(rule.Zone()) + "/" + store.Escape(of.String()), s.keys.Network(), s.keys.Instances()}
	if to != nil {
		args = append(args, written(to)...)
	}
	if _, err := s.evalText(ctx, lua.Network.Text(), s.keys.Networks(), args...); err != nil {
		return err
	}
	s.networks.looking <- struct{}{}
	defer func() { <-s.networks.looking }()
	s.networks.look()
	return nil
}

// mark is told the mark that a heartbeat has brought: less may be known after a look at a server that lacks changes.
func (n *networks) mark(mark int64) {
	n.looking <- struct{}{}
	defer func() { <-n.looking }()
	for _, zone := range n.zones.Range {
		zone.(*store.Networks).Sweep()
	}
	if n.beaten == mark+1 && n.known >= mark {
		n.looked = n.clock()
	} else if n.look() {
		n.beaten = mark + 1
	}
}

// look reads what has changed since the last look, and reports whether Redis has told all. If Redis has lost changes, the next
// heartbeat has another look follow: perhaps a replica was asked that a Sentinel took for the master.
func (n *networks) look() bool {
	n.beaten = 0 // the next heartbeat shows whether Redis has lost something since
	began, before := n.clock(), n.known
	fresh := began.Sub(n.looked) > networksUnseen
	if fresh {
		n.known = 0
	}
	changes, all := make(map[string]map[netip.Prefix]*store.Network), true
	for more := true; more; {
		var lost, ok bool
		if more, lost, ok = n.read(changes); !ok {
			n.known = before // what was read is in no tree: the next look reads it again
			return false
		}
		if lost {
			fresh, all = true, false
			n.looked = time.Time{} // so that a look that fails after this begins again
		}
	}
	if fresh {
		for zone := range n.zones.Range {
			if name := zone.(string); changes[name] == nil {
				changes[name] = nil // all of it goes
			}
		}
	}
	for zone, some := range changes {
		n.in(zone).Change(fresh, some)
	}
	n.looked = began
	return all
}

// read reads the next changes, and reports whether there may be more, whether Redis has lost some, and whether it has
// answered. If some are lost, it begins again.
func (n *networks) read(changes map[string]map[netip.Prefix]*store.Network) (more, lost, ok bool) {
	ctx := context.Background()
	text, err := n.of.evalText(ctx, lua.Networks.Text(), n.of.keys.Networks(), n.known, networksPerCall, n.of.keys.Network())
	if err != nil {
		return false, false, false
	}
	here := n.now()
	r := protocol.Reader{Rest: text}
	now, last := r.Number(), r.Number()
	if r.Short {
		return false, false, false
	}
	if last < n.known {
		clear(changes)
		n.known = 0
		return last > 0, true, true
	}
	found := 0
	for ; r.Rest != ""; found++ {
		mark, name, value := r.Number(), r.Sized(), r.Sized()
		if r.Short {
			return false, false, false
		}
		n.known = mark
		zone, network, ok := parseNetworkName(name)
		if !ok {
			continue // of another version
		}
		if changes[zone] == nil {
			changes[zone] = make(map[netip.Prefix]*store.Network)
		}
		if changes[zone][network] = nil; value != "" {
			changes[zone][network], _ = store.ParseNetwork(network, value, now, here) // a damaged one has no effect
		}
	}
	return found == networksPerCall, false, true
}

// parseNetworkName reads a name that writeNetwork has made.
func parseNetworkName(name string) (zone string, network netip.Prefix, ok bool) {
	before, after, _ := strings.Cut(name, "/")
	zone, errZone := url.PathUnescape(before)
	text, errText := url.PathUnescape(after)
	network, errNetwork := netip.ParsePrefix(text)
	return zone, network, errZone == nil && errText == nil && errNetwork == nil
}
