package fleet

import (
	"math"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// Counted says how much an instance has counted of a zone whose sets of keys, such as networks or groups, it tells. A list of
// these is one of keys, whose count of slots' time is that of requests ten minutes before.
type Counted struct {
	Since    int64  `json:"s"` // in milliseconds
	Requests uint64 `json:"n"` // since then
	Before   bool   `json:"b,omitempty"`
}

func newCounted(requests uint64, since time.Time) Counted {
	return Counted{Since: since.UnixMilli(), Requests: requests}
}

func (c *Counted) isPossible() bool {
	return c.Since >= 0 && c.Since <= mostTime && c.Requests <= mostCount
}

// newSets makes an empty list. unlisted is how many requests a set may have that is not in it.
func newSets(unlisted, before uint64) Top {
	return Top{Unlisted: [kinds]uint64{byRequests: unlisted, byRefused: unlisted, bySlotTime: before}}
}

// add adds a set to a list.
func (c *Counted) add(to *Top, text adminapi.KeyText, of *topk.Heavy) {
	counts := []uint64{of.Requests.AtLeast, of.Requests.Error, of.Refused.AtLeast, of.Refused.Error}
	if of.Before != nil {
		c.Before = true
		counts = append(counts, 0, 0, of.Before.AtLeast, of.Before.Error)
	}
	to.Keys = append(to.Keys, Key{KeyText: text, Counts: trimmed(counts), Distinct: of.Keys})
}

// Merged has the sets of a zone with the most requests, of several instances.
type Merged[C any] struct {
	Since    time.Time
	Requests uint64
	Top      []C

	// Unlisted is how many requests a set has at most that no instance lists.
	Unlisted uint64
}

// mergeCounted adds up how much was counted. before reports whether all instances have counted ten minutes before, too.
func mergeCounted[C any](of []*Counted) (m Merged[C], before bool) {
	m.Since, before = time.UnixMilli(of[0].Since), true
	for _, c := range of {
		m.Requests += c.Requests
		before = before && c.Before
		if since := time.UnixMilli(c.Since); since.Before(m.Since) {
			m.Since = since
		}
	}
	return m, before
}

// set is a set of keys with the counts of several instances.
type set struct {
	text adminapi.KeyText
	topk.Heavy
}

// mergeSets adds up lists of several instances: the set with the most requests comes first. As with keys, an instance that does
// not list a set may have counted it up to a bound, so the sum is uncertain by as much. It also returns how many requests a set
// has at most that no instance lists.
func mergeSets(of []*Top, before bool) (sets []set, unlisted uint64) {
	type keys struct{ one, all uint64 }
	lists, distinct := make([]Lists, len(of)), make(map[id]keys)
	for i, t := range of {
		lists[i] = Lists{t.List("", Kinds[byRequests], math.MaxInt), t.List("", Kinds[bySlotTime], math.MaxInt)}
		for k := range t.Keys {
			n, known := t.Keys[k].Distinct, keyID(&t.Keys[k].KeyText)
			distinct[known] = keys{max(n, distinct[known].one), n + distinct[known].all}
		}
	}
	sum := Merge(lists, math.MaxInt)
	for i := range sum.Keys {
		k := &sum.Keys[i]
		n := distinct[keyID(&k.KeyText)]
		s := set{k.KeyText, topk.Heavy{
			Requests: topk.Count{AtLeast: k.Requests, Error: k.RequestsError}, Refused: topk.Count{AtLeast: k.Refused, Error: k.RefusedError}, Keys: n.one,
		}}
		if n.all > n.one {
			s.KeysMost = n.all
		}
		if before {
			s.Before = &topk.Count{AtLeast: k.SlotMS, Error: k.SlotMSError}
		}
		sets = append(sets, s)
	}
	return sets, sum.Unlisted
}

// keepSets returns a cut that keeps the n first sets of each list of so many zones, and no list of the others. What is removed from a
// list counts as not listed.
func keepSets[T any](of func(*Zone) **T, cut func(*T, int), omitted func(*Omitted) *int) func(n, zones int) func(*Report) {
	return func(n, zones int) func(*Report) {
		return func(r *Report) {
			left := zones
			for i := range r.Zones {
				switch sets := of(&r.Zones[i]); {
				case *sets == nil:
				case left > 0:
					cut(*sets, n)
					left--
				default:
					*sets = nil
					*omitted(&r.Omitted)++
				}
			}
		}
	}
}

var (
	keepNetworks = keepSets(func(z *Zone) **Networks { return &z.Networks }, (*Networks).cut, func(o *Omitted) *int { return &o.Networks })
	keepGroups   = keepSets(func(z *Zone) **Groups { return &z.Groups }, (*Groups).cut, func(o *Omitted) *int { return &o.Groups })
)
