package cases

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
)

// begin is when a case begins, unless it says otherwise: at the start of a day, hour and year.
var begin = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// world is the world of one case.
type world struct {
	*engine
	clock.Timeline
	base     string // the beginning of URLs that are only a path; empty if the file has none
	store    *trial.Store
	ref      *pool.Ref // to the store
	detailed bool      // what happens is described in words
}

// newWorld returns a world in which all limits are unused.
func (e *engine) newWorld(base string, detailed bool) (*world, error) {
	w := &world{engine: e, base: base, detailed: detailed}
	w.MoveTo(begin.UnixMicro())
	var err error
	w.store, w.ref, err = trial.NewStore(&w.Timeline, 0)
	return w, err
}
