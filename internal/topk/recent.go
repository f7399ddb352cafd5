package topk

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// MaxKey is how many bytes of a key are kept. Longer keys are distinguished by their hashes,
// and listed by their beginning.
const MaxKey = 256

// Kind is a kind of count.
type Kind int

const (
	// Requests counts all requests.
	Requests Kind = iota

	// Refused counts requests that were refused, or would have been without a dry run. Keys that are often refused have
	// places of their own, so that keys with more requests do not displace them.
	Refused

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

	// RefusedCost is what the last refused request cost of which that is known; 0 without any.
	RefusedCost int64

	// Counts are by kind: the key has come at least so often.
	Counts [kinds]uint64
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

// keyInfo is what is known of a key.
type keyInfo struct {
	key    []byte // its beginning; a new key reuses the memory of its place
	length int
	plan   string // the last one
	cost   int64  // of the last request of which that is known; 0: of none
}

// New makes a Recent that counts in spans of this length.
func New(span time.Duration) *Recent {
	return &Recent{seed: maphash.MakeSeed(), span: span}
}

// Add counts a request, and if the kind is another than Requests, as one of that kind, too. It
// does not keep the key, but it keeps the plan and the cost of the request, unless that is empty or 0.
func (r *Recent) Add(key, plan string, kind Kind, cost int64) {
	c, hash := r.now(), r.hash(key)
	c.add(Requests, hash, key, plan, 0)
	if kind != Requests {
		c.add(kind, hash, key, plan, cost)
	}
}

func (c *spanCounts) add(kind Kind, hash uint64, key, plan string, cost int64) {
	b, of, isNew := c.sketches[kind].add(hash)
	defer b.mu.Unlock()
	if isNew {
		*of = keyInfo{key: append(of.key[:0], key[:min(len(key), MaxKey)]...), length: len(key)}
	}
	if of != nil && (plan != "" && of.plan != plan || cost > 0) {
		of.plan, of.cost = cmp.Or(plan, of.plan), cmp.Or(cost, of.cost)
	}
}

func (r *Recent) hash(key string) uint64 { return maphash.String(r.seed, key) }

// now returns the counts of this span. A timer ends it, so that Add needs no clock.
func (r *Recent) now() *spanCounts {
	c := r.current.Load()
	for c == nil {
		r.current.CompareAndSwap(nil, &spanCounts{since: time.Now()})
		r.arm()
		c = r.current.Load()
	}
	return c
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

// spanList is spans that have counts, the earlier one first.
type spanList []*spanCounts

func (r *Recent) spans() spanList {
	return slices.DeleteFunc(spanList{r.before.Load(), r.current.Load()}, func(c *spanCounts) bool { return c == nil })
}

// sketches returns the counts of a kind.
func (s spanList) sketches(kind Kind) (all []*sketch) {
	for _, c := range s {
		all = append(all, &c.sketches[kind])
	}
	return all
}

// entry returns what is known of a key, besides the key.
func (s spanList) entry(hash uint64) (e Entry) {
	var plans [kinds]string
	for kind := range kinds {
		for _, in := range s.sketches(kind) {
			of, n := in.count(hash)
			e.Counts[kind] += n
			plans[kind], e.RefusedCost = cmp.Or(of.plan, plans[kind]), cmp.Or(of.cost, e.RefusedCost)
		}
	}
	e.Plan = cmp.Or(plans[Requests], plans[Refused])
	return e
}

func (s spanList) since() (since time.Time) {
	if len(s) > 0 {
		since = s[0].since
	}
	return since
}

// Of returns what is known of a key, and since when it was counted: the zero time if no
// requests came at all.
func (r *Recent) Of(key string) (e Entry, since time.Time) {
	s := r.spans()
	e = s.entry(r.hash(key))
	e.Key, e.Length = key[:min(len(key), MaxKey)], len(key)
	return e, s.since()
}

// Top returns up to n keys, sorted by their certain counts of a kind, the highest first. It also returns since when they were
// counted: the zero time if no requests came.
func (r *Recent) Top(n int, by Kind) (top []Entry, since time.Time) {
	spans, keys := r.spans(), make(map[uint64]keyInfo)
	for _, s := range spans.sketches(by) {
		s.each(func(hash uint64, of *keyInfo, _ uint64) {
			keys[hash] = keyInfo{key: bytes.Clone(of.key), length: of.length}
		})
	}
	for hash, of := range keys {
		e := spans.entry(hash)
		e.Key, e.Length = string(of.key), of.length
		top = append(top, e)
	}
	slices.SortFunc(top, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Counts[by], a.Counts[by]), strings.Compare(a.Key, b.Key), cmp.Compare(a.Length, b.Length))
	})
	return top[:min(n, len(top))], spans.since()
}

// Spread says how recent requests are spread over keys.
type Spread struct {
	Requests uint64

	// Keys is the number of keys that are known: all, or some hundreds of them. Repeated is how
	// many of these have certainly come more than once.
	Keys, Repeated int
}

// Spread returns how recent requests are spread over keys.
func (r *Recent) Spread() (s Spread) {
	known := make(map[uint64]bool) // by hash; true if the key has come more than once
	for _, in := range r.spans().sketches(Requests) {
		s.Requests += in.each(func(hash uint64, _ *keyInfo, atLeast uint64) {
			_, again := known[hash]
			known[hash] = again || atLeast > 1
		})
	}
	s.Keys = len(known)
	for _, repeated := range known {
		if repeated {
			s.Repeated++
		}
	}
	return s
}
