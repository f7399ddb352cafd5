package report

import (
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// count counts the requests of one kind in a zone.
type count struct {
	now  atomic.Uint64 // in this second
	more atomic.Uint64 // in the seconds before, and not told yet
}

// turn reports whether a request is one of the first in its second, which are told, and how many more came since
// the last one that was.
func (p *Reporter) turn(z *zone.Zone, k kind) (more uint64, ok bool) {
	c := &p.counts[z.Index][k]
	if c.now.Add(1) > ofKind[k].most {
		return 0, false
	}
	p.seconds.after(time.Second, p.endSecond)
	return c.more.Swap(0), true
}

// endSecond ends a second, and logs what the next line cannot tell, because none has come for a second.
// There is no next second while there is nothing to tell.
func (p *Reporter) endSecond() {
	p.ending.Lock() // so that Close waits for one that runs, which may hold what is not told yet
	defer p.ending.Unlock()
	goesOn := false
	for i, z := range p.Zones {
		for k := range kinds {
			c := &p.counts[i][k]
			if n, most := c.now.Swap(0), ofKind[k].most; n > 0 {
				c.more.Add(max(n, most) - most)
				goesOn = true
			} else if more := c.more.Swap(0); more > 0 && p.Log == LogFirst && ofKind[k].message != "" {
				p.Logger.Info(ofKind[k].message+" again", zap.String("zone", z.Name), zap.Uint64("more", more), k.dryRun())
			}
		}
	}
	if goesOn {
		p.seconds.after(time.Second, p.endSecond)
	}
}

// timer is one timer for the first of several times.
type timer struct {
	mu     sync.Mutex
	timer  *time.Timer
	at     time.Time
	closed bool
}

// after calls do when a time has passed, unless it is to be called earlier anyway.
func (t *timer) after(d time.Duration, do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	at := now.Add(d)
	if t.closed || t.at.After(now) && !t.at.After(at) {
		return
	}
	if t.timer != nil {
		t.timer.Stop()
	}
	t.at, t.timer = at, time.AfterFunc(d, do)
}

// close stops the timer for good.
func (t *timer) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
}
