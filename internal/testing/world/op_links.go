package world

import (
	"math/rand/v2"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// What happens to messages between an instance, or all (-1), and Redis.
const (
	LoseRequests Kind = "LoseRequests" // connections break before a request arrives, now and then
	LoseReplies  Kind = "LoseReplies"  // they break before a reply arrives
	Delay        Kind = "Delay"        // messages take longer, by After at most; 0: by twice the timeout
)

var (
	_ = operate(operation{Kind: LoseRequests, sort: links, draw: drawLink, tells: lossTells})
	_ = operate(operation{Kind: LoseReplies, sort: links, draw: drawLink, tells: lossTells})
	_ = operate(operation{Kind: Delay, sort: links, draw: drawLink, tells: []string{store.FailureTimeout, store.FailureOpen}})
)

var lossTells = []string{store.FailureNetwork, store.FailureTimeout, store.FailureOpen}

func drawLink(r *rand.Rand, p *Plan, e *Event, _ time.Duration) {
	e.Instance = r.IntN(p.Instances+1) - 1
}
