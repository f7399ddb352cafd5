package slots

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// returning are slots of a key that nobody uses, and that are on their way to the store. An ask could overtake them, and be
// refused although they are free. So asks wait until they have been sent.
type returning struct {
	slots int
	since time.Duration
	over  chan struct{} // closed when all have been sent, or nobody is to wait any longer
	late  *time.Timer   // goes off when nobody is to wait any longer; nil if nobody has waited yet
}

// lost is after how long slots on their way are forgotten: the outbox says nothing of what it drops.
const lost = time.Minute

// leave notes that slots are on their way to the store: see Returned. The lock is held.
func (t *Table) leave(back []store.Adjustment, now time.Duration) {
	for of, r := range t.returning {
		if now-r.since > lost {
			t.over(of, r)
		}
	}
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
		t.over(of, r)
	}
}

// over ends that slots are on their way. The lock is held.
func (t *Table) over(of keyOfZone, r *returning) {
	if t.returning[of] != r {
		return // it has ended
	}
	delete(t.returning, of)
	close(r.over)
	if r.late != nil {
		r.late.Stop()
	}
}

// AwaitReturns waits until the slots of a check's key that nobody uses are back in the store. They may be lost, so they are
// waited for only until they have been on their way for so long. All who wait share a timer, so that they go on in their order.
func (t *Table) AwaitReturns(ctx context.Context, c *store.Check, now lend.Moment, atMost time.Duration) {
	of := zoneKeyOf(c)
	t.mu.Lock()
	r := t.returning[of]
	if r == nil {
		t.mu.Unlock()
		return
	}
	if r.late == nil {
		r.late = time.AfterFunc(atMost-(now.Mono-r.since), func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.over(of, r)
		})
	}
	t.mu.Unlock()
	select {
	case <-r.over:
	case <-ctx.Done():
	}
}
