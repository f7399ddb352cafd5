package world

import (
	"math/rand/v2"
	"time"
)

// Step has the clock of Redis step by After.
const Step Kind = "Step"

var _ = operate(operation{
	Kind: Step, sort: clocks,
	draw: func(r *rand.Rand, _ *Plan, e *Event, _ time.Duration) {
		e.After = between(r.Uint64(), 0, 4*time.Hour) - 2*time.Hour
		if r.IntN(2) == 0 {
			e.After /= 3600
		}
	},
	begin: func(w *world, _ int, e *Event) {
		for _, h := range w.servers() {
			h.offset += e.After
		}
		tell(w.history, &w.history.clocks, reading{w.net.now(), w.host.offset})
		w.history.lost(0, w.net.now()) // what was charged may count for less, or come back sooner
	},
})
