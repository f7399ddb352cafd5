package report

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
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
	if c.now.Add(1) > ofKind[k%kinds].most {
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.second == nil && !p.closed {
		p.second = time.AfterFunc(time.Second, p.endSecond)
	}
	return c.more.Swap(0), true
}

// endSecond ends a second. There is no next one while there is nothing to tell.
func (p *Reporter) endSecond() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.second = nil
	if p.tellRest() {
		p.second = time.AfterFunc(time.Second, p.endSecond)
	}
}

// tellRest logs what the next line cannot tell, because none has come for a second. It reports whether there may be more
// to tell in a second.
func (p *Reporter) tellRest() (goesOn bool) {
	for i, z := range p.Zones {
		for k := range 2 * kinds {
			c := &p.counts[i][k]
			if n, most := c.now.Swap(0), ofKind[k%kinds].most; n > 0 {
				c.more.Add(max(n, most) - most)
				goesOn = true
			} else if more := c.more.Swap(0); more > 0 && p.Log == LogFirst {
				p.Logger.Info(ofKind[k%kinds].message+" again", zap.String("zone", z.Name), zap.Uint64("more", more), k.dryRun())
			}
		}
	}
	return goesOn
}
