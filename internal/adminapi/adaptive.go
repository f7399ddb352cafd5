package adminapi

import (
	"encoding/json"
	"time"
)

// Adaptive is an adaptive limit on this instance.
type Adaptive struct {
	Name       string          `json:"name"`
	Definition json.RawMessage `json:"definition"` // the options

	// Limit is how many requests may run now. It goes up and down a little all the time while requests wait.
	Limit   int `json:"limit"`
	Running int `json:"running"`
	Waiting int `json:"waiting"`

	// Latency is the mean time of a slot in seconds.
	Latency float64 `json:"latency"`

	// Spread is the mean of the squares of these times, divided by the square of their mean: 1 if all slots are taken for
	// as long, and above 4 where quick and slow requests should have a limit each.
	Spread float64 `json:"spread"`

	// Trend says what the limit does: "nothing waits", "goes up", "goes down" or "rests".
	Trend string `json:"trend"`

	// Useful, Failed and Left count requests that have had a slot: those whose answer a client got, those that the
	// upstream failed, and those whose client had left. Metrics have them by class.
	Useful uint64 `json:"useful"`
	Failed uint64 `json:"failed"`
	Left   uint64 `json:"left"`

	// Refused counts requests that got no slot.
	Refused uint64 `json:"refused"`

	// Since is when the shortage began of which requests wait now. It may have had pauses of up to a minute. It is
	// absent while nothing waits.
	Since *time.Time `json:"since,omitempty"`
}
