package stats

import (
	"sync/atomic"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
)

// CostResult is what happened to a cost that the response says.
type CostResult uint8

const (
	CostRead     CostResult = iota // the response has said it
	CostUnknown                    // the response has ended without it
	CostInvalid                    // what the response says is no cost
	CostEncoded                    // the response has a content coding that cannot be decoded
	CostCutOff                     // the response was broken off before it
	CostFailed                     // the response is an error without it
	CostReturned                   // the response is not charged
	CostResults                    // the number of results
)

// CostNames are the names of the results in logs, metrics and the admin API.
var CostNames = [CostResults]string{
	CostRead: "read", CostUnknown: "unknown", CostInvalid: "invalid", CostEncoded: "encoded",
	CostCutOff: "broken_off", CostFailed: "failed", CostReturned: "not_charged",
}

var costFixes = [CostResults]*advice.Advice{
	CostUnknown: advice.New("costs/unknown", "check the paths of json in charge; for streams, let clients ask for the usage, or set the cost of such responses with unknown"),
	CostInvalid: advice.New("costs/invalid", "correct the paths and weights of json in charge: each number and the sum must be from 0 to 10^12"),
	CostEncoded: advice.New("costs/encoded", "let the upstream compress with gzip or not at all; Accept-Encoding of the requests already asks for that"),
}

// Fix says what to do about such responses; empty if nothing is wrong with them.
func (r CostResult) Fix() (fix advice.Text) {
	if a := costFixes[r]; a != nil {
		fix = a.With()
	}
	return fix
}

// Unread counts the responses whose cost was not read for a reason that needs a fix. It returns the most frequent
// reason, their number, and the number of all responses that count. Errors, responses that are not charged, and those that were broken off do not count.
func Unread(results [CostResults]uint64) (most CostResult, unread, of uint64) {
	for _, r := range []CostResult{CostUnknown, CostInvalid, CostEncoded} {
		if unread += results[r]; most == 0 || results[r] > results[most] {
			most = r
		}
	}
	return most, unread, unread + results[CostRead]
}

// Costs counts the results of a zone, and adds up what requests have cost.
type Costs struct {
	results [CostResults]atomic.Uint64
	sum     atomic.Uint64
}

// Add counts a request and its cost.
func (c *Costs) Add(result CostResult, cost int64) {
	c.results[result].Add(1)
	c.sum.Add(uint64(cost))
}

// Read returns the number of requests by result, and the sum of their costs.
func (c *Costs) Read() (results [CostResults]uint64, sum uint64) {
	for i := range results {
		results[i] = c.results[i].Load()
	}
	return results, c.sum.Load()
}
