package world

import "github.com/seed-161337e5/caddyratelimit/store"

// Redis answers, and does not do what it is asked.
const (
	Full       Kind = "Full"       // it has no memory
	Readonly   Kind = "Readonly"   // it is a replica for a moment
	NoReplicas Kind = "NoReplicas" // it has too few replicas
	Loading    Kind = "Loading"    // it loads what its disk or its master has, and answers each command so
	Forbid     Kind = "Forbid"     // the user may not write
)

var (
	_ = operate(operation{
		Kind: Full, sort: unable, often: 3, tells: []string{store.FailureOOM},
		hold: func(h *host, on bool) { h.redis.Full = on },
	})
	_ = operate(operation{
		Kind: Readonly, sort: unable, tells: []string{store.FailureReadonly},
		hold: func(h *host, on bool) { h.redis.Readonly = on || h.demoted },
	})
	_ = operate(operation{
		Kind: NoReplicas, sort: unable, often: 2, tells: []string{store.FailureOther},
		hold: func(h *host, on bool) { h.redis.Alone = on },
	})
	_ = operate(operation{
		Kind: Loading, sort: unable, often: 2, tells: []string{store.FailureLoading, store.FailureOpen},
		hold: func(h *host, on bool) {
			if h.redis.Refuses = ""; on {
				h.redis.Refuses = "LOADING Redis is loading the dataset in memory"
			}
		},
	})
	_ = operate(operation{
		Kind: Forbid, sort: unable, tells: []string{store.FailureAuth, store.FailureOpen},
		hold: func(h *host, on bool) {
			h.redis.Forbidden = nil
			if on {
				h.redis.Forbidden = map[string]bool{"SET": true, "SETRANGE": true, "RPUSH": true, "ZADD": true}
			}
		},
	})
)
