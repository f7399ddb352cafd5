package late

import (
	"net/http"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/usage"
)

// settledCost is what happened to one charge, for the access log.
type settledCost struct {
	Zone   string `json:"zone"`
	Result string `json:"result"`
	Booked int64  `json:"booked"`
	Cost   int64  `json:"cost"`
}

// openBody begins the body of a response. It reports whether its pieces must be passed to Write. Zones that read the same
// numbers share a reader.
func (c *Completion) openBody(header http.Header) bool {
	for i := range c.charges {
		l := &c.charges[i]
		fields := l.zone.Charge.Fields
		if !l.due || fields == nil {
			continue
		}
		same := slices.IndexFunc(c.charges[:i], func(other charge) bool {
			return other.due && slices.Equal(other.zone.Charge.JSON, l.zone.Charge.JSON)
		})
		if same >= 0 {
			l.reader, l.unreadable = c.charges[same].reader, c.charges[same].unreadable
			continue
		}
		l.reader, l.unreadable = usage.NewReader(fields, header.Get("Content-Type"), header["Content-Encoding"]...)
		if l.reader != nil {
			c.readers = append(c.readers, l.reader)
		}
	}
	return len(c.readers) > 0
}

// Write reads the next piece of the body. It never fails.
func (c *Completion) Write(p []byte) (int, error) {
	for _, r := range c.readers {
		_, _ = r.Write(p)
	}
	return len(p), nil
}

// settle charges what the request has cost, at the end of its response. One that is broken off may not have said all of it.
func (c *Completion) settle(brokenOff bool) {
	c.readers = nil // of what an error route still writes, nothing is read
	for i := range c.charges {
		l := &c.charges[i]
		if l.due {
			result, final := l.final(c.failed, brokenOff)
			c.conclude(l, result, final)
		}
	}
}

// conclude charges what a request has cost. It counts the result of a charge by the body, and keeps it for the access log.
func (c *Completion) conclude(l *charge, result stats.CostResult, final int64) {
	l.due = false
	c.pay(l, final)
	if l.zone.Charge.Fields != nil {
		l.zone.Stats.Costs.Add(result, final)
		c.settled = append(c.settled, settledCost{l.zone.Name, stats.CostNames[result], l.booked.Cost, final})
	}
}

// final returns what the request has cost.
func (l *charge) final(failed, brokenOff bool) (result stats.CostResult, final int64) {
	var events, said int64
	found, valid := false, true
	if r := l.reader; r != nil {
		if decoding := r.Close(); l.unreadable == nil {
			l.unreadable = decoding
		}
		events = r.Events()
		said, found, valid = r.Cost()
		brokenOff = brokenOff && !r.Done()
	}
	from, booked := l.zone.Charge, l.booked.Cost
	switch {
	case brokenOff:
		return stats.CostCutOff, from.BrokenOff.Of(booked, events, said)
	case l.unreadable != nil:
		result = stats.CostEncoded
	case !valid:
		result = stats.CostInvalid
	case found:
		return stats.CostRead, said
	case failed:
		return stats.CostFailed, booked
	default:
		result = stats.CostUnknown
	}
	return result, from.Unknown.Of(booked, events, said)
}
