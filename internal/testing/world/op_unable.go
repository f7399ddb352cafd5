package world

import "github.com/seed-161337e5/caddyratelimit/store"

// Redis answers, and does not do what it is asked.
const (
	Full       Kind = "Full"       // it has no memory
	Readonly   Kind = "Readonly"   // it is a replica for a moment
	NoReplicas Kind = "NoReplicas" // it has too few replicas
	Unsaved    Kind = "Unsaved"    // it cannot write to its disk
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
		Kind: NoReplicas, sort: unable, tells: []string{store.FailureOther},
		hold: func(h *host, on bool) { h.redis.Alone = on },
	})
	_ = operate(operation{
		Kind: Unsaved, sort: unable, tells: []string{store.FailureOther},
		hold: func(h *host, on bool) { h.redis.Unsaved = on },
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
