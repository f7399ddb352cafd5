package redisstore

import (
	"context"
	"time"
)

// turn is a request's place among those that come when a refusal is just over. The first
// asks Redis, and the others wait for what it hears, which most often is another refusal
// that they may share, or took the last there was: else a flood would cost Redis a call
// for each of those that come within one round trip. A request takes one turn at most,
// so no two wait for each other.
type turn struct {
	first bool
	asked chan struct{} // closed when the first has been answered; nil: there is nobody to wait for
	at    time.Duration
	shard *deniedShard // nil: nothing was over
	id    deniedID
}

// take takes a turn at a refusal that is over, if it is just over: later on there may be
// room for several again. The shard's lock is held.
func (t *turn) take(shard *deniedShard, id deniedID, r refusal, now time.Duration, justOver bool) {
	if t.shard != nil {
		return
	}
	t.shard, t.id, t.at = shard, id, now
	if r.brief || !justOver {
		return
	}
	if r.asked == nil {
		t.first = true
		r.asked = make(chan struct{})
		shard.known[id] = r
	}
	t.asked = r.asked
}

// met reports whether a refusal was over.
func (t *turn) met() bool { return t.shard != nil }

// wait waits until the first has been answered.
func (t *turn) wait(ctx context.Context) error {
	select {
	case <-t.asked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end is for a request that met a refusal that was over, when what it has heard has been
// remembered. If it has heard nothing, the refusal is the latest that is known of the key,
// and stays.
func (d *denied) end(t *turn, heard bool) {
	t.shard.mu.Lock()
	r, ok := t.shard.known[t.id]
	switch {
	case !ok || r.received > t.at: // it is another one
	case heard:
		delete(t.shard.known, t.id)
		d.size.Add(-1)
	case t.first && r.asked == t.asked:
		r.asked = nil
		t.shard.known[t.id] = r
	}
	t.shard.mu.Unlock()
	if t.first {
		close(t.asked)
	}
}
