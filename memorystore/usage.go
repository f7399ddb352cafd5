package memorystore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// maxUsage is how many sums a store keeps. Further keys share one sum of their window.
const maxUsage = 1 << 20

// usageBook has the sums of all zones, in the order in which their keys came.
type usageBook struct {
	mu      sync.Mutex
	windows map[usageWindow]*usageSums
	kept    int
	batches map[string]int64 // the last one of each process
}

type usageWindow struct {
	zone   string
	length time.Duration
	from   int64
}

type usageKey struct {
	kind store.UsageKind
	key  string
}

type usageSums struct {
	until time.Time
	all   []store.Usage
	at    map[usageKey]int
}

// AddUsage implements [store.UsageKeeper].
func (s *Store) AddUsage(_ context.Context, process string, batch int64, sums []store.Usage) error {
	b := &s.usage
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.windows == nil {
		b.windows, b.batches = make(map[usageWindow]*usageSums), make(map[string]int64)
	}
	if batch <= b.batches[process] {
		return nil
	}
	b.batches[process] = batch
	b.forget(time.Now())
	for i := range sums {
		b.add(sums[i])
	}
	return nil
}

// forget forgets windows whose time is over.
func (b *usageBook) forget(now time.Time) {
	for w, sums := range b.windows {
		if !now.Before(sums.until) {
			b.kept -= len(sums.all)
			delete(b.windows, w)
		}
	}
}

func (b *usageBook) add(u store.Usage) {
	w := usageWindow{u.Zone, u.Length, u.From.Unix()}
	in := b.windows[w]
	if in == nil {
		in = &usageSums{at: make(map[usageKey]int)}
		b.windows[w] = in
	}
	in.until = u.Until
	key := usageKey{u.Kind, u.Key}
	at, known := in.at[key]
	if !known && b.kept >= maxUsage {
		key = usageKey{kind: store.UsageOfRest}
		at, known = in.at[key]
	}
	if !known {
		at = len(in.all)
		in.at[key] = at
		in.all = append(in.all, store.Usage{Zone: u.Zone, Length: u.Length, From: u.From, Kind: key.kind, Key: key.key})
		b.kept++
	}
	to := &in.all[at]
	to.Requests, to.Cost, to.Refused = to.Requests+u.Requests, to.Cost+u.Cost, to.Refused+u.Refused
}

// ReadUsage implements [store.UsageKeeper].
func (s *Store) ReadUsage(_ context.Context, q *store.UsageQuery, cursor string, n int) (sums []store.Usage, next string, err error) {
	from, at := q.From.Unix(), 0
	if cursor != "" {
		if _, err := fmt.Sscanf(cursor, "%d-%d", &from, &at); err != nil || at < 0 || from < q.From.Unix() {
			return nil, "", fmt.Errorf("%w: %q", store.ErrCursor, cursor)
		}
	}
	b := &s.usage
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(time.Now())
	for ; time.Unix(from, 0).Before(q.To); from, at = from+int64(q.Length/time.Second), 0 {
		in := b.windows[usageWindow{q.Zone, q.Length, from}]
		switch {
		case in == nil:
		case q.Key != nil:
			if i, known := in.at[usageKey{q.Kind, *q.Key}]; known {
				sums = append(sums, in.all[i])
			}
		default:
			part := in.all[min(at, len(in.all)):]
			part = part[:min(len(part), n-len(sums))]
			sums = append(sums, part...)
			if at += len(part); at < len(in.all) {
				return sums, fmt.Sprintf("%d-%d", from, at), nil
			}
		}
	}
	return sums, "", nil
}

var _ store.UsageKeeper = (*Store)(nil)
