package model

import (
	"math/big"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// family is what limits must have in common so that charges under one of them come back in
// the same way under the other.
type family struct {
	window   time.Duration
	calendar algorithms.Calendar
	place    string
	first    bool // windows start with the first request
	rate     string
	interval int64 // how many events come back at once at the end of a window
	queue    bool
}

func (k *Key) family(l algorithms.Limit) family {
	switch k.algorithm {
	case "concurrency":
		return family{}
	case "fixed_window":
		if l.Calendar == 0 {
			return family{window: l.Window, first: l.Align == algorithms.AlignFirstRequest}
		}
		place := time.UTC
		if l.Location != nil {
			place = l.Location
		}
		return family{calendar: l.Calendar, place: place.String()}
	case "token_bucket", "leaky_bucket":
		if l.Refill == algorithms.RefillInterval {
			return family{window: l.Window, interval: l.Events}
		}
		return family{rate: big.NewRat(l.Events, l.Window.Microseconds()).String(), queue: l.Mode == algorithms.ModeQueue}
	}
	return family{window: l.Window}
}
