package redisstore

import (
	"context"
)

// turn is a request's place among those that come when a refusal is just over. The first
// asks Redis, and the others wait for what it hears, which most often is another refusal
// that they may share, or took the last there was: else a flood would cost Redis a call
// for each of those that come within one round trip. A request takes one turn at most,
// so no two wait for each other.
type turn struct {
	first bool
	asked chan struct{} // closed when the first has been answered; nil: nothing was over
	shard *deniedShard
	id    deniedID
}

// take takes a turn at a refusal that is over. The shard's lock is held.
func (t *turn) take(shard *deniedShard, id deniedID, r refusal) {
	if t.asked != nil {
		return
	}
	if r.asked == nil {
		t.first = true
		r.asked = make(chan struct{})
		shard.known[id] = r
	}
	t.asked, t.shard, t.id = r.asked, shard, id
}

// wait waits until the first has been answered.
func (t *turn) wait(ctx context.Context) error {
	select {
	case <-t.asked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end is for the first, when what it heard has been remembered.
func (d *denied) end(t *turn) {
	t.shard.mu.Lock()
	if r, ok := t.shard.known[t.id]; ok && r.asked == t.asked {
		delete(t.shard.known, t.id)
		d.size.Add(-1)
	}
	t.shard.mu.Unlock()
	close(t.asked)
}
