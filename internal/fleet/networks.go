package fleet

import (
	"net/netip"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// Networks has the networks of a zone with the most requests, as far as an instance has counted them.
type Networks struct {
	Counted

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
	n := &Networks{Counted: newCounted(total, since)}
	for family := range levels {
		for _, l := range levels[family] {
			to := NetworkLevel{l.Bits, newSets(l.Unlisted, l.UnlistedBefore)}
			for i := range l.Counts {
				n.add(&to.Top, adminapi.KeyText{Key: l.Counts[i].Network.String()}, &l.Counts[i].Heavy)
			}
			n.Levels[family] = append(n.Levels[family], to)
		}
	}
	return n
}

// cut keeps the n first networks of each length of prefix.
func (n *Networks) cut(most int) {
	for family := range n.Levels {
		for i := range n.Levels[family] {
			n.Levels[family][i].cut(most)
		}
	}
}

// level returns the list of a length of prefix. An instance that does not tell it may have counted all requests in one network.
func (n *Networks) level(family, bits int) (list *Top, told bool) {
	at := slices.IndexFunc(n.Levels[family], func(l NetworkLevel) bool { return l.Bits == bits })
	if at < 0 {
		none := newSets(n.Requests, 0)
		return &none, false
	}
	return &n.Levels[family][at].Top, true
}

// MergeNetworks adds up what instances have counted of a zone, and lists the networks with at least this share of all requests.
func MergeNetworks(share float64, of []*Networks) Merged[topk.NetworkCount] {
	counted := make([]*Counted, len(of))
	for i, n := range of {
		counted[i] = &n.Counted
	}
	m, before := mergeCounted[topk.NetworkCount](counted)
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
			var sets []set
			sets, merged.Unlisted = mergeSets(lists, before)
			for _, s := range sets {
				if network, err := netip.ParsePrefix(s.text.Key); err == nil {
					merged.Counts = append(merged.Counts, topk.NetworkCount{Network: network, Heavy: s.Heavy})
				}
			}
			m.Unlisted = max(m.Unlisted, merged.Unlisted)
			levels[family] = append(levels[family], merged)
		}
	}
	m.Top = levels.Top(share, m.Requests)
	return m
}

func (n *Networks) isPossible() bool {
	ok := n.Counted.isPossible()
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
