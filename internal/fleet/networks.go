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

// NetworkLevel has the networks with one length of prefix: a list of keys, whose count of slots' time is that of requests ten
// minutes before.
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
			to := NetworkLevel{Bits: l.Bits}
			to.Unlisted = [kinds]uint64{byRequests: l.Unlisted, byRefused: l.Unlisted, bySlotTime: l.UnlistedBefore}
			for _, c := range l.Counts {
				counts := []uint64{c.Requests.AtLeast, c.Requests.Error, c.Refused.AtLeast, c.Refused.Error}
				if c.Before != nil {
					n.Before = true
					counts = append(counts, 0, 0, c.Before.AtLeast, c.Before.Error)
				}
				to.Keys = append(to.Keys, Key{KeyText: adminapi.KeyText{Key: c.Network.String()}, Counts: counts, Distinct: c.Keys})
			}
			n.Levels[family] = append(n.Levels[family], to)
		}
	}
	return n
}

// cut keeps the n first networks of each length of prefix. What is removed counts as not listed.
func (n *Networks) cut(most int) {
	for family := range n.Levels {
		for i := range n.Levels[family] {
			n.Levels[family][i].cut(most)
		}
	}
}

// level returns the list of a length of prefix, as lists of keys are merged. An instance that does not list this length may
// have counted all requests in one network.
func (n *Networks) level(family, bits int) (*NetworkLevel, Lists) {
	at := slices.IndexFunc(n.Levels[family], func(l NetworkLevel) bool { return l.Bits == bits })
	if at < 0 {
		none := &NetworkLevel{Bits: bits}
		none.Unlisted = [kinds]uint64{byRequests: n.Requests, byRefused: n.Requests}
		return none, Lists{none.List("", Kinds[byRequests], math.MaxInt)}
	}
	l := &n.Levels[family][at]
	return l, Lists{l.List("", Kinds[byRequests], math.MaxInt), l.List("", Kinds[bySlotTime], math.MaxInt)}
}

// Merged has the networks of a zone of several instances.
type Merged struct {
	Since    time.Time
	Requests uint64
	Top      []topk.NetworkCount

	// KeysMost is how many keys a network has if no key came to several instances. What Top says are those of one of them.
	KeysMost map[netip.Prefix]uint64

	// Unlisted is how many requests a network has at most that no instance lists.
	Unlisted uint64
}

// MergeNetworks adds up what instances have counted of a zone, and lists the networks with at least this share of all requests. As
// with keys, an instance that does not list a network may have counted it up to a bound, so the sum is uncertain by as much.
func MergeNetworks(share float64, of []*Networks) Merged {
	m := Merged{Since: time.UnixMilli(of[0].Since), KeysMost: make(map[netip.Prefix]uint64)}
	before := true
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
			merged := m.level(of, family, l.Bits, before)
			m.Unlisted = max(m.Unlisted, merged.Unlisted)
			levels[family] = append(levels[family], merged)
		}
	}
	m.Top = levels.Top(share, m.Requests)
	return m
}

// level adds up the networks with one length of prefix.
func (m *Merged) level(of []*Networks, family, bits int, before bool) topk.NetworkLevel {
	lists, distinct := make([]Lists, len(of)), make(map[netip.Prefix]uint64)
	for i, n := range of {
		var l *NetworkLevel
		l, lists[i] = n.level(family, bits)
		for k := range l.Keys {
			if network, err := netip.ParsePrefix(l.Keys[k].Key); err == nil {
				distinct[network] = max(distinct[network], l.Keys[k].Distinct)
				m.KeysMost[network] += l.Keys[k].Distinct
			}
		}
	}
	sum := Merge(lists, math.MaxInt)
	merged := topk.NetworkLevel{Bits: bits, Unlisted: sum.Unlisted}
	for _, k := range sum.Keys {
		network, err := netip.ParsePrefix(k.Key)
		if err != nil {
			continue
		}
		c := topk.NetworkCount{Network: network, Heavy: topk.Heavy{
			Requests: topk.Count{AtLeast: k.Requests, Error: k.RequestsError}, Refused: topk.Count{AtLeast: k.Refused, Error: k.RefusedError}, Keys: distinct[network],
		}}
		if before {
			c.Before = &topk.Count{AtLeast: k.SlotMS, Error: k.SlotMSError}
		}
		merged.Counts = append(merged.Counts, c)
	}
	return merged
}

func (n *Networks) isPossible() bool {
	ok := n.Since >= 0 && n.Since <= mostTime && n.Requests <= mostCount
	for family, longest := range []int{32, 128} {
		for i := range n.Levels[family] {
			l := &n.Levels[family][i]
			ok = ok && l.Bits > 0 && l.Bits <= longest && l.isPossible()
			for k := range l.Keys {
				network, err := netip.ParsePrefix(l.Keys[k].Key)
				ok = ok && err == nil && network == network.Masked() && network.Bits() == l.Bits && network.Addr().Is6() == (family == 1) && l.Keys[k].Distinct <= mostCount
			}
		}
	}
	return ok
}
