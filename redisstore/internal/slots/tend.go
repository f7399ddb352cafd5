package slots

import (
	"context"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Tend gives back the slots that this process does not need, and asks what is free, until the store is closed. The link gives
// back what is left then.
func (l *Layer) Tend() { l.Loans.Tend(l.Done, l.tend) }

func (l *Layer) tend() {
	now := l.Loans.Now()
	back, peeks := l.Kept.Due(now, l.Processes())
	l.giveBack(back)
	for some := range slices.Chunk(peeks, l.PerCall) {
		go func() {
			decisions := make([]algorithms.Decision, len(some))
			if l.below.Take(context.Background(), some, decisions) != nil {
				return
			}
			for i := range some {
				l.Kept.Free(&some[i], now, &decisions[i])
			}
		}()
	}
}

// giveBack gives back slots that nobody uses. Until they have been sent, asks for their keys wait.
func (l *Layer) giveBack(back []store.Adjustment) {
	if len(back) == 0 {
		return
	}
	adjustments := layer.Of(back...)
	for i := range adjustments {
		adjustments[i].Sent = func(bool, error) { l.Kept.Returned(&back[i].Check) }
	}
	l.below.Adjust(adjustments...)
}
