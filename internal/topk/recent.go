package topk

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Count is an estimate: the true count is from AtLeast to AtLeast + Error.
type Count struct {
	AtLeast uint64 `json:"n"`
	Error   uint64 `json:"e,omitempty"`
}

// Kind is a kind of count.
type Kind int

const (
	// Requests counts all requests.
	Requests Kind = iota

	// Refused counts refused requests. Keys that are often refused have places of their own, so
	// that keys with more requests do not displace them.
	Refused

	// DryRun counts requests that a dry run would have refused, in places of their own, too.
	DryRun

	kinds
)

// Entry is a frequent key.
type Entry struct {
	// Key is the first MaxKey bytes of the key.
	Key string

	// Length is the length of the whole key.
	Length int

	// Plan is the plan of the key's last request that had one.
	Plan string

	// Counts are by kind.
	Counts [kinds]Count
}

// Recent counts the keys of recent requests: those of the current span of time and of the one
// before. It frees its memory when no requests come. It may be used from several goroutines at
// once. Make it with [New].
type Recent struct {
	seed    maphash.Seed
	span    time.Duration
	current atomic.Pointer[spanCounts]
	before  atomic.Pointer[spanCounts]
	armed   atomic.Bool
}

// spanCounts has the counts of one span.
type spanCounts struct {
	since    time.Time
	sketches [kinds]sketch
}

// New makes a Recent that counts in spans of this length.
func New(span time.Duration) *Recent {
	return &Recent{seed: maphash.MakeSeed(), span: span}
}

// Add counts a request, and if the kind is another than Requests, as one of that kind, too. It
// does not keep the key, but it keeps the plan of the request, unless that is empty.
func (r *Recent) Add(key, plan string, kind Kind) {
	c, hash := r.now(), maphash.String(r.seed, key)
	c.sketches[Requests].add(hash, key, plan)
	if kind != Requests {
		c.sketches[kind].add(hash, key, plan)
	}
}

// NoteRefusedCost notes what a request cost that was refused, and that was added as such.
func (r *Recent) NoteRefusedCost(key string, cost int64) {
	r.now().sketches[Refused].noteCost(maphash.String(r.seed, key), cost)
}

// RefusedCost returns what the last request of a key cost that was noted, or 0 if that is not known.
func (r *Recent) RefusedCost(key string) int64 {
	hash := maphash.String(r.seed, key)
	for _, c := range slices.Backward(r.spans()) {
		if cost := c.sketches[Refused].cost(hash); cost > 0 {
			return cost
		}
	}
	return 0
}

// now returns the counts of this span.
func (r *Recent) now() *spanCounts {
	c := r.current.Load()
	for c == nil {
		r.begin()
		c = r.current.Load()
	}
	return c
}

// begin starts a span. A timer ends it, so that Add needs no clock.
func (r *Recent) begin() {
	r.current.CompareAndSwap(nil, &spanCounts{since: time.Now()})
	r.arm()
}

func (r *Recent) arm() {
	if r.armed.CompareAndSwap(false, true) {
		time.AfterFunc(r.span, r.rotate)
	}
}

func (r *Recent) rotate() {
	r.before.Store(r.current.Swap(nil))
	r.armed.Store(false)
	if r.before.Load() != nil || r.current.Load() != nil {
		r.arm()
	}
}

// spans returns the spans that have counts, the earlier one first.
func (r *Recent) spans() []*spanCounts {
	return slices.DeleteFunc([]*spanCounts{r.before.Load(), r.current.Load()}, func(c *spanCounts) bool { return c == nil })
}

// Counts returns the counts of a key, and since when they were counted: the zero time if no
// requests came at all.
func (r *Recent) Counts(key string) (counts [kinds]Count, since time.Time) {
	hash := maphash.String(r.seed, key)
	for _, c := range slices.Backward(r.spans()) {
		since = c.since
		for kind := range counts {
			n := c.sketches[kind].count(hash)
			counts[kind].AtLeast += n.AtLeast
			counts[kind].Error += n.Error
		}
	}
	return counts, since
}

// Plan returns the plan of a key's last request that had one, or "" if that is not known.
func (r *Recent) Plan(key string) string {
	hash := maphash.String(r.seed, key)
	for _, c := range slices.Backward(r.spans()) {
		if plan := c.sketches[Requests].plan(hash); plan != "" {
			return plan
		}
	}
	return ""
}

// Top returns up to n keys, sorted by their certain counts of a kind, the highest first. A key that it
// does not return has come at most unlisted times, counted by the same kind. It also returns since
// when they were counted: the zero time if no requests came.
func (r *Recent) Top(n int, by Kind) (top []Entry, unlisted uint64, since time.Time) {
	spans, all := r.spans(), make(map[uint64]Entry)
	for _, c := range spans {
		unlisted += c.sketches[by].unlisted()
		c.sketches[by].each(func(hash uint64, t keyInfo) {
			e, ok := all[hash]
			if !ok {
				e = Entry{Key: string(t.key), Length: t.length}
			}
			e.Plan = cmp.Or(t.plan, e.Plan) // the later span comes last
			all[hash] = e
		})
	}
	for hash, e := range all {
		for _, c := range spans {
			e.Plan = cmp.Or(c.sketches[Requests].plan(hash), e.Plan)
			for kind := range e.Counts {
				n := c.sketches[kind].count(hash)
				e.Counts[kind].AtLeast += n.AtLeast
				e.Counts[kind].Error += n.Error
			}
		}
		top = append(top, e)
	}
	slices.SortFunc(top, func(a, b Entry) int {
		x, y := a.Counts[by], b.Counts[by]
		return cmp.Or(cmp.Compare(y.AtLeast, x.AtLeast), cmp.Compare(x.Error, y.Error),
			strings.Compare(a.Key, b.Key), cmp.Compare(a.Length, b.Length))
	})
	if len(spans) > 0 {
		since = spans[0].since
	}
	for _, e := range top[min(n, len(top)):] {
		unlisted = max(unlisted, e.Counts[by].AtLeast+e.Counts[by].Error)
	}
	return top[:min(n, len(top))], unlisted, since
}
