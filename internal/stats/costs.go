package stats

import "sync/atomic"

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
