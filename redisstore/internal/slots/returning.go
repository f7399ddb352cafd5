package slots

import (
	"context"
	"maps"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// returning are slots of a key that nobody uses, and that are on their way to the store. An ask could overtake them, and be
// refused although they are free. So asks wait until they have been sent.
type returning struct {
	slots int
	since time.Duration
	over  chan struct{} // closed when all have been sent
}

// lost is after how long slots on their way are forgotten: the outbox says nothing of what it drops.
const lost = time.Minute

// leave notes that slots are on their way to the store: see Returned. The lock is held.
func (t *Table) leave(back []store.Adjustment, now time.Duration) {
	maps.DeleteFunc(t.returning, func(_ keyOfZone, r *returning) bool { return now-r.since > lost })
	for i := range back {
		of := zoneKeyOf(&back[i].Check)
		r := t.returning[of]
		if r == nil {
			r = &returning{since: now, over: make(chan struct{})}
			t.returning[of] = r
		}
		r.slots++
	}
}

// Returned notes that a slot which Due or Void has returned was sent to the store, whatever has come of it.
func (t *Table) Returned(c *store.Check) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := zoneKeyOf(c)
	r := t.returning[of]
	if r == nil {
		return
	}
	if r.slots--; r.slots == 0 {
		delete(t.returning, of)
		close(r.over)
	}
}

// AwaitReturns waits until the slots of a check's key that nobody uses are back in the store. They may be lost, so they are
// waited for only until they have been on their way for so long.
func (t *Table) AwaitReturns(ctx context.Context, c *store.Check, now lend.Moment, atMost time.Duration) {
	t.mu.Lock()
	r := t.returning[zoneKeyOf(c)]
	if r != nil {
		if atMost -= now.Mono - r.since; atMost <= 0 {
			delete(t.returning, zoneKeyOf(c))
			r = nil
		}
	}
	t.mu.Unlock()
	if r == nil {
		return
	}
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-r.over:
	case <-timer.C:
	case <-ctx.Done():
	}
}
