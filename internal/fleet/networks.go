package fleet

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// Networks has the networks of a zone with the most requests, as far as an instance has counted them.
type Networks struct {
	Since    time.Time          `json:"s"`
	Requests uint64             `json:"n"` // since then
	Levels   topk.NetworkLevels `json:"l"`
}

// NewNetworks returns what is counted, without a bound on its size.
func NewNetworks(of *topk.Networks) *Networks {
	levels, total, since := of.Levels()
	return &Networks{Since: since, Requests: total, Levels: levels}
}

// cut keeps the n first networks of each length of prefix. What is removed counts as not listed.
func (n *Networks) cut(most int) {
	for family := range n.Levels {
		for i := range n.Levels[family] {
			l := &n.Levels[family][i]
			for _, c := range l.Counts[min(most, len(l.Counts)):] {
				l.Unlisted = max(l.Unlisted, c.Requests.AtLeast+c.Requests.Error)
			}
			l.Counts = l.Counts[:min(most, len(l.Counts))]
		}
	}
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
	m.Since = of[0].Since
	for _, n := range of {
		m.Requests += n.Requests
		if n.Since.Before(m.Since) {
			m.Since = n.Since
		}
	}
	var levels topk.NetworkLevels
	for family := range levels {
		for i, l := range of[0].Levels[family] {
			var all []topk.NetworkLevel
			for _, n := range of {
				if other := n.Levels[family]; i < len(other) && other[i].Bits == l.Bits {
					all = append(all, other[i])
				} else { // it may have counted all requests in one network
					all = append(all, topk.NetworkLevel{Unlisted: n.Requests})
				}
			}
			merged := mergeLevel(l.Bits, all)
			m.Unlisted = max(m.Unlisted, merged.Unlisted)
			levels[family] = append(levels[family], merged)
		}
	}
	m.Top = levels.Top(share, m.Requests)
	return m
}

// mergeLevel adds up lists of several instances: the network with the most requests comes first. As with keys, an instance that
// does not list a network may have counted it up to a bound, so the sum is uncertain by as much.
func mergeLevel(bits int, of []topk.NetworkLevel) topk.NetworkLevel {
	sum, places := topk.NetworkLevel{Bits: bits}, make(map[netip.Prefix]int)
	listed := make([]map[netip.Prefix]topk.NetworkCount, len(of))
	for i, l := range of {
		sum.Unlisted += l.Unlisted
		listed[i] = make(map[netip.Prefix]topk.NetworkCount)
		for _, c := range l.Counts {
			if c.Network.Bits() != bits || c.Network != c.Network.Masked() {
				continue // another program has written it
			}
			listed[i][c.Network] = c
			if _, known := places[c.Network]; !known {
				places[c.Network] = len(sum.Counts)
				sum.Counts = append(sum.Counts, topk.NetworkCount{Network: c.Network})
			}
		}
	}
	for i := range sum.Counts {
		c := &sum.Counts[i]
		for instance := range of {
			addNetwork(c, &of[instance], listed[instance])
		}
		if c.KeysMost == c.Keys {
			c.KeysMost = 0
		}
	}
	slices.SortStableFunc(sum.Counts, func(a, b topk.NetworkCount) int { return cmp.Compare(b.Requests.AtLeast, a.Requests.AtLeast) })
	return sum
}

// addNetwork adds what an instance has counted of a network.
func addNetwork(sum *topk.NetworkCount, of *topk.NetworkLevel, listed map[netip.Prefix]topk.NetworkCount) {
	c, known := listed[sum.Network]
	if !known {
		most := topk.Count{Error: of.Unlisted}
		c = topk.NetworkCount{Requests: most, Refused: most}
	}
	sum.Requests, sum.Refused = plus(sum.Requests, c.Requests), plus(sum.Refused, c.Refused)
	sum.Keys, sum.KeysMost = max(sum.Keys, c.Keys), sum.KeysMost+c.Keys
}

func plus(a, b topk.Count) topk.Count {
	return topk.Count{AtLeast: a.AtLeast + b.AtLeast, Error: a.Error + b.Error}
}
