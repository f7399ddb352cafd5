package world

import "github.com/seed-161337e5/caddyratelimit/store"

// Redis answers that it is not ready.
const (
	Loading    Kind = "Loading"    // it loads what its disk or its master has
	MasterDown Kind = "MasterDown" // it is a replica for a moment, and does not reach its master
)

var (
	_ = operate(operation{
		Kind: Loading, sort: unable, tells: []string{store.FailureLoading, store.FailureOpen},
		hold: func(h *host, on bool) { h.refuse(on, "LOADING Redis is loading the dataset in memory") },
	})
	_ = operate(operation{
		Kind: MasterDown, sort: unable, tells: []string{store.FailureLoading, store.FailureOpen},
		hold: func(h *host, on bool) {
			h.refuse(on, masterDown)
		},
	})
)

const masterDown = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."

// refuse has the server answer each command with an error, or not any more.
func (h *host) refuse(on bool, with string) {
	if on {
		h.redis.Refuses = with
	} else if h.redis.Refuses == with {
		h.redis.Refuses = ""
	}
}
