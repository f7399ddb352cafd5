package report

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// dedup remembers which keys were reported in their windows, so that a flood is reported once per
// key and window, and at most for reportsPerSecond keys per second. Its size is bounded: when it
// is full, new keys are counted but not reported. Keys are kept as hashes with a secret seed.
type dedup struct {
	paces   [categories]pace
	zones   []*zone.Zone
	seed    maphash.Seed
	shards  [dedupShards]dedupShard
	noRoom  []atomic.Uint64 // by series: requests of keys for which there was no room
	summary func(*zone.Zone, category, suppressed)
	sweeps  timer
	armed   atomic.Bool // spares sweeps' lock
	closed  atomic.Bool
}

const (
	dedupShards = 64

	// shardKeys is how many keys a shard remembers. All shards together take about 3 MB.
	shardKeys = 1024

	// reportsPerSecond is how many keys of each category are reported in a second.
	reportsPerSecond = 50

	// sweepInterval is how often closed windows are removed.
	sweepInterval = 2 * time.Second
)

type dedupShard struct {
	mu       sync.Mutex
	reported map[uint64]entry
}

// entry is a key that was reported.
type entry struct {
	until      time.Duration // since clockStart
	suppressed uint32        // requests since
	series     uint32
}

// clockStart is when the clock of this package began.
var clockStart = time.Now()

// seriesOf numbers the categories of all zones.
func seriesOf(f *limiter.Refusal, c category) int { return f.Zone.Index*int(categories) + int(c) }

// suppressed counts what was not reported.
type suppressed struct{ requests, keys uint64 }

func newDedup(zones []*zone.Zone, summary func(*zone.Zone, category, suppressed)) *dedup {
	return &dedup{zones: zones, seed: maphash.MakeSeed(), noRoom: make([]atomic.Uint64, len(zones)*int(categories)), summary: summary}
}

// first reports whether a key is refused for the first time in a window and there is room to
// report it.
func (d *dedup) first(f *limiter.Refusal, c category) bool {
	series, ban := seriesOf(f, c), c&banCategory != 0
	hash := maphash.String(d.seed, f.Key) + uint64(series)*0x9e3779b97f4a7c15 // 2^64 / golden ratio
	shard, now := &d.shards[hash%dedupShards], time.Since(clockStart)
	shard.mu.Lock()
	e, known := shard.reported[hash]
	switch {
	case known && now < e.until && !ban: // the store reports a ban once, and after an unban another one may begin
		e.suppressed++
		shard.reported[hash] = e
		shard.mu.Unlock()
		return false
	case !known && len(shard.reported) >= shardKeys:
		shard.mu.Unlock()
		d.noRoom[series].Add(1)
		return false
	case shard.reported == nil:
		shard.reported = make(map[uint64]entry)
	}
	// Every ban is reported, because refusals that begin one are few.
	report := ban || d.paces[c].allow(now)
	if !report {
		e.suppressed++
	}
	// What was suppressed in the previous window is added to this one's summary.
	shard.reported[hash] = entry{until: now + window(f), suppressed: e.suppressed, series: uint32(series)}
	shard.mu.Unlock()
	d.arm()
	return report
}

// pace is a second and the number of reports in it.
type pace struct{ atomic.Int64 }

const paceBits = 16 // of the number

// allow reports whether there may be another report now.
func (p *pace) allow(now time.Duration) bool {
	for {
		was, next := p.Load(), int64(now/time.Second)<<paceBits
		switch {
		case was>>paceBits != next>>paceBits:
			next++
		case was&(1<<paceBits-1) >= reportsPerSecond:
			return false
		default:
			next = was + 1
		}
		if p.CompareAndSwap(was, next) {
			return true
		}
	}
}

// forever is later than the end of all windows.
const forever = time.Duration(1<<63 - 1)

// close closes all windows. A request that outlives its config opens none, and no timer keeps it.
func (d *dedup) close() {
	d.closed.Store(true)
	d.sweeps.close()
	d.sweep(forever)
}

// arm starts the timer of the next sweep, unless it is running. It does not run while there are no
// windows.
func (d *dedup) arm() {
	if d.armed.CompareAndSwap(false, true) {
		d.sweeps.after(sweepInterval, func() {
			d.armed.Store(false)
			if d.sweep(time.Since(clockStart)) {
				d.arm()
			}
		})
	}
	if d.closed.Load() {
		d.sweep(forever)
	}
}

// sweep forgets the keys whose windows have closed, and logs one summary for each series of what
// was suppressed. It reports whether keys are left.
func (d *dedup) sweep(now time.Duration) (more bool) {
	all := make([]suppressed, len(d.noRoom))
	for i := range d.shards {
		more = d.shards[i].sweep(now, all) || more
	}
	for i, s := range all {
		s.requests += d.noRoom[i].Swap(0)
		if s.requests > 0 {
			d.summary(d.zones[i/int(categories)], category(i%int(categories)), s)
		}
	}
	return more
}

func (s *dedupShard) sweep(now time.Duration, all []suppressed) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for hash, e := range s.reported {
		if now < e.until {
			continue
		}
		if e.suppressed > 0 {
			all[e.series].requests += uint64(e.suppressed)
			all[e.series].keys++
		}
		delete(s.reported, hash)
	}
	if len(s.reported) == 0 {
		s.reported = nil // because maps do not shrink
	}
	return s.reported != nil
}
