package stats

import (
	"net/netip"
	"sync/atomic"
	"time"
)

// Widened knows which bans have lately widened to networks.
type Widened struct {
	begun  atomic.Uint64
	latest atomic.Pointer[[]WidenedBan]
}

// WidenedBan is a ban of a network, because keys of it were banned.
type WidenedBan struct {
	Network        netip.Prefix
	Banned, Passed int // how many of its keys were banned, and how many others had passed
	Spared         bool
	Until          time.Time
}

// Count counts a network whose ban begins, or would begin without a dry run.
func (w *Widened) Count() { w.begun.Add(1) }

// Begun returns how many bans have widened by this process.
func (w *Widened) Begun() uint64 { return w.begun.Load() }

// Set notes all decisions about networks that hold in the fleet.
func (w *Widened) Set(all []WidenedBan) { w.latest.Store(&all) }

// All returns the decisions that hold at a time, as far as this process knows. They must not be changed.
func (w *Widened) All(now time.Time) (all []WidenedBan) {
	if latest := w.latest.Load(); latest != nil {
		for _, b := range *latest {
			if b.Until.After(now) {
				all = append(all, b)
			}
		}
	}
	return all
}
