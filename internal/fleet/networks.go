package fleet

import (
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// Networks has the networks of a zone with the most requests, as far as an instance has counted them.
type Networks struct {
	Since    int64  `json:"s"` // in milliseconds
	Requests uint64 `json:"n"` // since then
	Before   bool   `json:"b,omitempty"`

	// Levels are those of IPv4 and IPv6, the longest prefixes first.
	Levels [2][]NetworkLevel `json:"l"`
}

// NetworkLevel has the networks with one length of prefix.
type NetworkLevel struct {
	Bits int `json:"b"`
	Top
}

// NewNetworks returns what is counted, without a bound on its size.
func NewNetworks(of *topk.Networks) *Networks {
	levels, total, since := of.Levels()
	n := &Networks{Since: since.UnixMilli(), Requests: total}
	for family := range levels {
		for _, l := range levels[family] {
			to := NetworkLevel{l.Bits, noNetworks(l.Unlisted, l.UnlistedBefore)}
			for i := range l.Counts {
				n.add(&to.Top, &l.Counts[i])
			}
			n.Levels[family] = append(n.Levels[family], to)
		}
	}
	return n
}

// noNetworks makes an empty list. unlisted is how many requests a network may have that is not in it.
func noNetworks(unlisted, before uint64) Top {
	return Top{Unlisted: [kinds]uint64{byRequests: unlisted, byRefused: unlisted}, UnlistedBefore: before}
}

// add adds a network to a list.
func (n *Networks) add(to *Top, of *topk.NetworkCount) {
	counts := []uint64{of.Requests.AtLeast, of.Requests.Error, of.Refused.AtLeast, of.Refused.Error}
	k := Key{KeyText: adminapi.KeyText{Key: of.Network.String()}, Counts: trimmed(counts), Distinct: of.Keys}
	if of.Before != nil {
		n.Before, k.Before = true, [2]uint64{of.Before.AtLeast, of.Before.Error}
	}
	to.Keys = append(to.Keys, k)
}

// cut keeps the n first networks of each length of prefix.
func (n *Networks) cut(most int) {
	for family := range n.Levels {
		for i := range n.Levels[family] {
			n.Levels[family][i].cut(most)
		}
	}
}

// keepNetworks returns a cut that keeps the n first networks of each list of so many zones, and no list of the others. What is
// removed from a list counts as not listed.
func keepNetworks(n, zones int) func(*Report) {
	return func(r *Report) {
		left := zones
		for i := range r.Zones {
			switch z := &r.Zones[i]; {
			case z.Networks == nil:
			case left > 0:
				z.Networks.cut(n)
				left--
			default:
				z.Networks = nil
				r.Omitted.Networks++
			}
		}
	}
}

// level returns the list of a length of prefix. An instance that does not tell it may have counted all requests in one network.
func (n *Networks) level(family, bits int) (list *Top, told bool) {
	at := slices.IndexFunc(n.Levels[family], func(l NetworkLevel) bool { return l.Bits == bits })
	if at < 0 {
		none := noNetworks(n.Requests, 0)
		return &none, false
	}
	return &n.Levels[family][at].Top, true
}

// MergedNetworks has the networks of a zone with the most requests, of several instances.
type MergedNetworks struct {
	Since    time.Time
	Requests uint64
	Top      []topk.NetworkCount

	// Unlisted is how many requests a network has at most that no instance lists.
	Unlisted uint64
}

// MergeNetworks adds up what instances have counted of a zone, and lists the networks with at least this share of all requests.
func MergeNetworks(share float64, of []*Networks) (m MergedNetworks) {
	before := true // all instances have counted ten minutes before, too
	m.Since = time.UnixMilli(of[0].Since)
	for _, n := range of {
		m.Requests += n.Requests
		before = before && n.Before
		if since := time.UnixMilli(n.Since); since.Before(m.Since) {
			m.Since = since
		}
	}
	var levels topk.NetworkLevels
	for family := range levels {
		for _, l := range of[0].Levels[family] {
			lists, before := make([]*Top, len(of)), before
			for i, n := range of {
				var told bool
				lists[i], told = n.level(family, l.Bits)
				before = before && told
			}
			merged := topk.NetworkLevel{Bits: l.Bits}
			merged.Counts, merged.Unlisted = mergeLists(lists, before)
			m.Unlisted = max(m.Unlisted, merged.Unlisted)
			levels[family] = append(levels[family], merged)
		}
	}
	m.Top = levels.Top(share, m.Requests)
	return m
}

// mergeLists adds up lists of several instances: the network with the most requests comes first. As with keys, an instance that
// does not list a network may have counted it up to a bound, so the sum is uncertain by as much. It also returns how many requests
// a network has at most that no instance lists.
func mergeLists(of []*Top, before bool) (counts []topk.NetworkCount, unlisted uint64) {
	type keys struct{ one, all uint64 }
	lists, earlier, distinct := make([]Lists, len(of)), make([]Lists, len(of)), make(map[id]keys)
	for i, t := range of {
		lists[i], earlier[i] = Lists{t.List("", Kinds[byRequests], math.MaxInt)}, Lists{t.before()}
		for k := range t.Keys {
			n, known := t.Keys[k].Distinct, keyID(&t.Keys[k].KeyText)
			distinct[known] = keys{max(n, distinct[known].one), n + distinct[known].all}
		}
	}
	sum, was := Merge(lists, math.MaxInt), Lists{Merge(earlier, math.MaxInt)}.counted()
	for i := range sum.Keys {
		k := &sum.Keys[i]
		network, err := netip.ParsePrefix(k.Key)
		if err != nil {
			continue
		}
		n, was := distinct[keyID(&k.KeyText)], was[keyID(&k.KeyText)]
		c := topk.NetworkCount{
			Network:  network,
			Requests: topk.Count{AtLeast: k.Requests, Error: k.RequestsError}, Refused: topk.Count{AtLeast: k.Refused, Error: k.RefusedError}, Keys: n.one,
		}
		if n.all > n.one {
			c.KeysMost = n.all
		}
		if before {
			c.Before = &topk.Count{AtLeast: was.Requests, Error: was.RequestsError}
		}
		counts = append(counts, c)
	}
	return counts, sum.Unlisted
}

func (n *Networks) isPossible() bool {
	ok := n.Since >= 0 && n.Since <= mostTime && n.Requests <= mostCount
	for family, longest := range []int{32, 128} {
		for i := range n.Levels[family] {
			l := &n.Levels[family][i]
			ok = ok && l.Bits > 0 && l.Bits <= longest && l.isPossible()
			for k := range l.Keys {
				network, err := netip.ParsePrefix(l.Keys[k].Key)
				ok = ok && err == nil && network == network.Masked() && network.Bits() == l.Bits && network.Addr().Is6() == (family == 1)
			}
		}
	}
	return ok
}
