package late

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/cost"
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

// payEvery is how often a request pays for what its response has taken so far. So no more than this time is lost if
// this process dies, and a window sees the time that passes in it.
const payEvery = 5 * time.Second

// meter measures what a response takes. Its methods may be called of a nil one, which measures nothing.
type meter struct {
	clock clock.Clock

	mu       sync.Mutex // guards the rest, and the charges that are metered
	began    time.Duration
	heard    bool          // the response has begun, and its client was there
	upstream time.Duration // until the response began; negative before
	took     time.Duration // until the handlers behind were done; negative before
	bytes    int64
	timer    clock.Timer // of the next payment; nil before the start
	stopped  bool        // nothing is paid any more
}

// lock locks the meter, and returns what unlocks it.
func (m *meter) lock() (unlock func()) {
	if m == nil {
		return func() {}
	}
	m.mu.Lock()
	return m.mu.Unlock
}

// begin notes that the response begins, and whether its client is there.
func (m *meter) begin(heard bool) {
	if m == nil {
		return
	}
	defer m.lock()()
	if m.upstream < 0 {
		m.upstream, m.heard = m.clock.Now()-m.began, heard
	}
}

// end notes that the handlers behind are done.
func (m *meter) end() {
	if m == nil {
		return
	}
	defer m.lock()()
	if m.took < 0 {
		m.took = m.clock.Now() - m.began
	}
}

// add adds bytes of the body.
func (m *meter) add(bytes int64) {
	if m != nil {
		defer m.lock()()
		m.bytes += bytes
	}
}

// stop stops the payments.
func (m *meter) stop() {
	if m != nil {
		defer m.lock()()
		m.halt()
	}
}

func (m *meter) halt() {
	if m.stopped = true; m.timer != nil {
		m.timer.Stop()
	}
}

// Start begins to measure what the response takes, when the request goes to the next handlers.
func (c *Completion) Start() {
	if c.meter == nil {
		return
	}
	defer c.meter.lock()()
	c.meter.began = c.meter.clock.Now()
	c.meter.timer = c.meter.clock.AfterFunc(payEvery, c.payRunning)
}

// payRunning charges for what the response has taken so far, if that is more than was charged. A request that may not count
// pays nothing before its response says so: an algorithm that bounds what is charged late cannot give all of it back.
func (c *Completion) payRunning() {
	defer c.meter.lock()()
	if c.meter.stopped {
		return
	}
	for i := range c.charges {
		if l := &c.charges[i]; l.metered && !l.open {
			if cost := c.taken(l); cost > l.paid {
				c.pay(l, cost)
			}
		}
	}
	c.meter.timer.Reset(payEvery)
}

// countsBytes reports whether a request is charged for the bytes of its response. Then each piece must be seen.
func (c *Completion) countsBytes() bool {
	return slices.ContainsFunc(c.charges, func(l charge) bool { return l.zone.CostMeasured != nil && l.zone.CostMeasured.Of == cost.Bytes })
}

// taken returns what the response costs by what it has taken so far.
func (c *Completion) taken(l *charge) int64 {
	m, by := c.meter, l.zone.CostMeasured
	took := m.took
	if by.Of == cost.UpstreamTime && m.upstream >= 0 {
		took = m.upstream
	}
	if took < 0 {
		took = m.clock.Now() - m.began
	}
	return by.Cost(took, m.bytes, l.measured.Least)
}

// measuredCost returns what a request costs whose response is over. If the client has left before the response began, or
// there is none, the upstream may have gone on with its work. Then the request costs at least what was booked.
func (c *Completion) measuredCost(l *charge) (stats.CostResult, int64) {
	taken := c.taken(l)
	if c.meter.heard || taken > l.booked.Cost {
		return stats.CostRead, taken
	}
	return stats.CostCutOff, l.booked.Cost
}

// closeMeter charges what the request has cost, and notes that for the next ones of its kind.
func (c *Completion) closeMeter() {
	c.meter.end()
	defer c.meter.lock()()
	if c.meter == nil || c.meter.stopped {
		return
	}
	c.meter.halt()
	for i := range c.charges {
		l := &c.charges[i]
		if !l.metered {
			continue
		}
		l.metered = false
		result, cost := c.measuredCost(l)
		c.pay(l, cost)
		c.settle(l, result, cost)
		if result == stats.CostRead {
			l.zone.Stats.Estimates.Table().Learn(l.measured.Kind, cost)
		}
	}
}

// Measured charges what a response has taken that was not written, but is known from a log.
func (c *Completion) Measured(bytes int64) {
	c.meter.add(bytes)
	c.closeMeter()
}
