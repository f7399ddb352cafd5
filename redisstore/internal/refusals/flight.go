package refusals

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// Flight is how requests that come when a refusal is just over ask again as one. The first of
// them leads: it asks Redis, and the others wait for its answer, which most often is another
// refusal that holds for them too, or took the last there was. Otherwise a flood would cost
// Redis a call for each request that comes within one round trip. A request joins one flight
// at most, so no two wait for each other. The zero Flight has joined none.
type Flight struct {
	leads  bool
	landed *landing // of the leader; nil: no request leads
	at     time.Duration
	shard  *shard // nil: no refusal was over
	id     id
	of     *store.Prepared // the limit of the refusal
}

// landing is the end of a flight.
type landing struct {
	over chan struct{} // closed when the leader has its answer, or none
	err  error         // of the leader
}

// join joins the flight of a refusal that is over, if it is just over: later on there may be
// room for several requests again. The shard's lock is held.
func (f *Flight) join(shard *shard, id id, r *refusal, now time.Duration, justOver bool) {
	if f.shard != nil {
		return
	}
	f.shard, f.id, f.of, f.at = shard, id, r.prepared, now
	if r.brief || !justOver {
		return
	}
	if r.landed == nil {
		f.leads = true
		r.landed = &landing{over: make(chan struct{})}
	}
	f.landed = r.landed
}

// Follows reports whether another request is asking already.
func (f *Flight) Follows() bool { return f.landed != nil && !f.leads }

// Wait waits until the leader has its answer. It returns the leader's error, if there is one that Land was given.
func (f *Flight) Wait(ctx context.Context) error {
	select {
	case <-f.landed.over:
		return f.landed.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// MetExpired reports whether the request met a refusal that was over, so that [Cache.Land]
// has something to do.
func (f *Flight) MetExpired() bool { return f.shard != nil }

// Land ends a flight, when the answer has been put into the cache. Without an answer the
// refusal is the latest that is known of the key, and stays. The error is for the requests that follow.
func (c *Cache) Land(f *Flight, answered bool, err error) {
	f.shard.mu.Lock()
	r := f.shard.find(f.id, f.of)
	switch {
	case r == nil || r.received > f.at: // it is another one
	case answered:
		c.delete(f.shard, f.id, r)
	case f.leads && r.landed == f.landed:
		r.landed = nil
	}
	f.shard.mu.Unlock()
	if f.leads {
		f.landed.err = err
		close(f.landed.over)
	}
}
