package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// All overrides of networks are in one slot, and each process keeps a copy of them, in which requests look. Without any,
// that costs Redis nothing: the heartbeat brings a mark, which another change replaces. From then on each process asks
// about once a second for what has changed after its own mark, until no network is left.

const (
	// firstMark is below all marks, and above the scores of processes: see lua/beat.lua.
	firstMark = "(1500000000000000"

	// networksPerCall is how many networks a call reads.
	networksPerCall = 500

	// networksUnseen is how long a process may go without a look and still learn only of changes: what is removed is
	// forgotten later.
	networksUnseen = time.Hour

	// lookEvery is how often this process looks while there are networks: a change is known a second after it at the
	// latest, if an answer takes no longer than a tenth of it.
	lookEvery = 900 * time.Millisecond
)

// networks has the overrides of networks of all zones.
type networks struct {
	of    *Store
	clock func() time.Time
	began time.Time

	zones sync.Map // *store.Networks by the name of the zone

	looking chan struct{} // has a value while a look is under way; it guards what follows. No mutex: who waits for Redis would stop a test's clock
	known   atomic.Int64  // the mark up to which all is known
	looked  time.Time     // when

	marks  sync.Mutex
	beaten int64 // the mark of the last heartbeat, plus 1

	awake atomic.Bool // whether run looks
	wake  chan struct{}
	start sync.Once
	done  chan struct{}
}

func newNetworks(s *Store, clock func() time.Time) *networks {
	if clock == nil {
		clock = time.Now
	}
	return &networks{of: s, clock: clock, began: clock(), looking: make(chan struct{}, 1), wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// now is the clock of all [store.Networks] here, which never goes back.
func (n *networks) now() int64 { return n.clock().Sub(n.began).Microseconds() + 1 }

// Networks implements [store.Networker].
func (s *operators) Networks(rule *store.Rule) *store.Networks { return s.networks.in(rule.Zone()) }

func (n *networks) in(zone string) *store.Networks {
	if known, ok := n.zones.Load(zone); ok {
		return known.(*store.Networks)
	}
	known, _ := n.zones.LoadOrStore(strings.Clone(zone), store.NewNetworks(n.now))
	return known.(*store.Networks)
}

// SetNetwork implements [store.Networker].
func (s *operators) SetNetwork(ctx context.Context, rule *store.Rule, network netip.Prefix, override store.Override) error {
	kind, tail, err := rule.PrepareNetwork(network, override)
	if err != nil {
		return err
	}
	return s.writeNetwork(ctx, rule, network, string([]byte{kind}), override.For.Microseconds(), tail)
}

// ClearNetwork implements [store.Networker].
func (s *operators) ClearNetwork(ctx context.Context, rule *store.Rule, network netip.Prefix) error {
	return s.writeNetwork(ctx, rule, network)
}

// writeNetwork writes the override of a network in the zone, or removes it.
func (s *operators) writeNetwork(ctx context.Context, rule *store.Rule, network netip.Prefix, value ...any) error {
	args := append([]any{store.Escape(rule.Zone()) + "/" + store.Escape(network.String()), s.keys.Network(), s.keys.Instances()}, value...)
	if _, err := s.evalText(ctx, lua.Network.Text(), s.keys.Networks(), args...); err != nil {
		return err
	}
	s.networks.look()
	return nil
}

// mark is told the mark that a heartbeat has brought: less may be known after a look at a server that lacks changes.
func (n *networks) mark(mark int64) {
	n.marks.Lock()
	other := n.beaten != mark+1 || n.known.Load() < mark
	n.marks.Unlock()
	if other && n.look() {
		n.beat(mark + 1)
	}
}

func (n *networks) beat(beaten int64) {
	n.marks.Lock()
	n.beaten = beaten
	n.marks.Unlock()
}

// run looks for changes as long as there are networks, until the store is closed.
func (n *networks) run() {
	defer close(n.done)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if n.look(); n.any() {
				continue
			}
			if n.awake.Store(false); n.any() && n.awake.CompareAndSwap(false, true) {
				continue // one has come meanwhile
			}
			ticker.Stop()
		case <-n.wake:
			ticker.Reset(lookEvery)
		case <-n.of.quit:
			return
		}
	}
}

// wait waits until nothing looks any longer. The store must be closed.
func (n *networks) wait() {
	n.start.Do(func() { close(n.done) })
	<-n.done
}

// any reports whether a zone has a network.
func (n *networks) any() (found bool) {
	for _, zone := range n.zones.Range {
		zone.(*store.Networks).Sweep()
		found = found || zone.(*store.Networks).Any()
	}
	return found
}

// look reads what has changed since the last look, and reports whether Redis has told all. While there are networks,
// looks follow. If Redis has lost changes, the next heartbeat has another one follow: perhaps a replica was asked that a Sentinel
// took for the master.
func (n *networks) look() bool {
	n.looking <- struct{}{}
	defer func() { <-n.looking }()
	began := n.clock()
	fresh := began.Sub(n.looked) > networksUnseen
	if fresh {
		n.known.Store(0)
	}
	changes, all := make(map[string][]store.NetworkChange), true
	for {
		more, lost, err := n.read(changes)
		if err != nil {
			return false // the next look sees all of it
		}
		if lost {
			fresh, all = true, false
			n.beat(0)
		}
		if !more {
			break
		}
	}
	if fresh {
		for zone := range n.zones.Range {
			if name := zone.(string); changes[name] == nil {
				changes[name] = []store.NetworkChange{}
			}
		}
	}
	for zone, some := range changes {
		n.in(zone).Change(fresh, some...)
	}
	n.looked = began
	if n.any() && n.awake.CompareAndSwap(false, true) {
		n.start.Do(func() { go n.run() })
		select {
		case n.wake <- struct{}{}:
		default:
		}
	}
	return all
}

// read reads the next changes, and reports whether there may be more, and whether Redis has lost some: then it begins again.
func (n *networks) read(changes map[string][]store.NetworkChange) (more, lost bool, err error) {
	ctx := context.Background()
	text, err := n.of.evalText(ctx, lua.Networks.Text(), n.of.keys.Networks(), n.known.Load(), networksPerCall, n.of.keys.Network())
	if err != nil {
		return false, false, err
	}
	here := n.now()
	if len(text) < 16 {
		return false, false, errors.New("redis answered networks without the time")
	}
	now, last := number(text), number(text[8:])
	if last < n.known.Load() {
		clear(changes)
		n.known.Store(0)
		return last > 0, true, nil
	}
	found := 0
	for text = text[16:]; len(text) > 0; found++ {
		mark, name, value, rest, err := cutNetwork(text)
		if err != nil {
			return false, false, err
		}
		n.known.Store(mark)
		text = rest
		zone, network, err := parseNetworkName(name)
		if err != nil {
			continue // of another version
		}
		change := store.NetworkChange{Prefix: network}
		if value != "" {
			change.Network, _ = store.ParseNetwork(network, value, now, here) // a damaged one has no effect
		}
		changes[zone] = append(changes[zone], change)
	}
	return found == networksPerCall, false, nil
}

func number(text string) int64 { return int64(binary.BigEndian.Uint64([]byte(text[:8]))) }

// cutNetwork cuts what lua/networks.lua writes for a network from a text.
func cutNetwork(text string) (mark int64, name, value, rest string, err error) {
	cut := func(head int) (part string) {
		if len(text) < head+4 {
			err = errors.New("redis answered a network that is cut off")
			return ""
		}
		n := int(binary.BigEndian.Uint32([]byte(text[head:])))
		if text = text[head+4:]; len(text) < n {
			err = errors.New("redis answered a network that is cut off")
			return ""
		}
		part, text = text[:n], text[n:]
		return part
	}
	if len(text) >= 8 {
		mark = number(text)
	}
	name = cut(8)
	if err == nil {
		value = cut(0)
	}
	return mark, name, value, text, err
}

// parseNetworkName reads a name that writeNetwork has made.
func parseNetworkName(name string) (zone string, network netip.Prefix, err error) {
	before, after, _ := strings.Cut(name, "/")
	zone, errZone := url.PathUnescape(before)
	text, errText := url.PathUnescape(after)
	network, errNetwork := netip.ParsePrefix(text)
	if err := errors.Join(errZone, errText, errNetwork); err != nil {
		return "", network, fmt.Errorf("%q names no network: %w", name, err)
	}
	return zone, network, nil
}

var _ store.Networker = (*Store)(nil)
