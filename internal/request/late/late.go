// Package late is what is known of a request's cost only after its decision: from the status, the header, the trailers
// and the body of the response. All of it has one life:
//
//	          Judge: the response is not charged for
//	booked ──────────────────────────────────────────► settled, all is given back
//	  │ │     readCost, settle: the response says its cost
//	  │ └──────────────────────────────────────────────► settled, the difference is charged or given back
//	  │       settle(brokenOff): it ends before it has said so
//	  └────────────────────────────────────────────────► broken off, what the zone says for that is charged
//
// A charge is booked when the request is decided, and each that has a header or a body to wait for is settled or broken
// off once. keep leaves what is booked as it is. What a response has said is never undercut.
package late

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/usage"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// StatusClientClosedRequest is the status of a request whose client has left. Only logs show it.
const StatusClientClosedRequest = 499

// Completion is what remains to be done when a request is over: slots to give back, and charges
// that depend on the response. It keeps the store open until then.
type Completion struct {
	strips  []string // headers that the client must not see
	charges []charge
	reads   bool            // a charge depends on the body of the response
	readers []*usage.Reader // of the body
	failed  bool            // the response is an error
	settled []settledCost   // by the body
	session pool.Session    // has no store if nothing was charged, and then nothing to end
	slots   []store.Adjustment

	clock clock.Clock
	asked time.Duration // when the store was asked for the charges, on the clock
}

var completions = sync.Pool{New: func() any { return new(Completion) }}

// New returns a completion that gives back slots and ends a session. Strips are headers that the client must not see.
func New(strips []string, session pool.Session, slots []store.Adjustment) *Completion {
	c := completions.Get().(*Completion)
	c.strips, c.session, c.slots = strips, session, slots
	return c
}

// charge is a charge that the response may change.
type charge struct {
	zone   *zone.Zone
	booked store.Adjustment // gives it back
	open   bool             // whether the response counts is not known yet
	due    bool             // the response has still to say what it costs
	paid   int64            // what was charged so far

	reader     *usage.Reader // of the body
	unreadable error         // why it cannot be decoded
}

// settledCost is what happened to one charge, for the access log.
type settledCost struct {
	Zone   string `json:"zone"`
	Result string `json:"result"`
	Booked int64  `json:"booked"`
	Cost   int64  `json:"cost"`
}

// Book adds a charge, which back gives back. The store was asked at that time of the clock.
func (c *Completion) Book(by clock.Clock, asked time.Duration, z *zone.Zone, back store.Adjustment) {
	c.charges = append(c.charges, charge{
		zone: z, booked: back, paid: back.Cost, open: z.Charge.Matcher != nil, due: z.Charge.SaysCost(),
	})
	c.clock, c.asked = by, asked
	c.reads = c.reads || z.Charge.Fields != nil
}

// chargesLate reports whether the response may change what the request is charged.
func (c *Completion) chargesLate() bool { return len(c.charges) > 0 }

// Judge gives back what a response of this status and these headers is not charged for, and reads from the header what
// the request has cost. Where the client has left without a response, it cannot be known what that would have been, so the
// charge stays.
func (c *Completion) Judge(status int, header http.Header) {
	c.failed = status >= http.StatusBadRequest
	for i := range c.charges {
		l := &c.charges[i]
		if !l.open {
			continue
		}
		l.open = false
		m := l.zone.Charge.Matcher
		if status == StatusClientClosedRequest && !slices.Contains(m.StatusCode, status) { // unknown
			continue
		}
		charged := m.Match(status, header)
		l.zone.Judged.Count(status, charged)
		if !charged {
			c.conclude(l, stats.CostReturned, 0)
		}
	}
	c.readCost(header)
}

// keep leaves the charges as they are, whatever the response will be.
func (c *Completion) keep() {
	for i := range c.charges {
		c.charges[i].open = false
	}
}

// readCost reads from the header of the response, or its trailer, what the request has cost.
func (c *Completion) readCost(header http.Header) {
	for i := range c.charges {
		l := &c.charges[i]
		name := l.zone.Charge.CostHeader
		if !l.due || name == "" {
			continue
		}
		values := header[name]
		if len(values) == 0 {
			values = header[http.TrailerPrefix+name]
		}
		if len(values) == 0 {
			continue
		}
		l.due = false
		switch final, err := parseCost(values); {
		case err == nil:
			c.pay(l, final)
		case l.zone.UnclearCost.Allow():
			logging.Logger().Warn("the response does not say what the request has cost; the charge stays as it is",
				zap.String("zone", l.zone.Name), zap.String("header", name), zap.Error(err))
		}
	}
}

// parseCost parses the cost of a request that an upstream has sent.
func parseCost(values []string) (int64, error) {
	text := strings.TrimSpace(strings.Join(values, ", "))
	cost, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !config.ValidCost(cost) {
		return 0, fmt.Errorf("it must be a whole number from 0 to %d, got %.32q", algorithms.MaxEvents, text)
	}
	return cost, nil
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

// Write reads the next piece of the body, unless the charges are settled. It never fails.
func (c *Completion) Write(p []byte) (int, error) {
	for _, r := range c.readers {
		_, _ = r.Write(p)
	}
	return len(p), nil
}

// settle charges what the request has cost, at the end of its response. One that is broken off may not have said all of it.
func (c *Completion) settle(brokenOff bool) {
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

// pay charges the difference between the final cost and what was charged before.
func (c *Completion) pay(l *charge, final int64) {
	a := l.booked
	if a.Delta = final - l.paid; a.Delta != 0 {
		l.paid = final
		a.Known = c.clock.Now() - c.asked
		c.session.Adjust(a)
	}
}

// Release gives back slots. It must be called when the next handlers have returned or panicked.
// After it, now or later, End must be called.
func (c *Completion) Release() {
	if len(c.slots) > 0 {
		c.session.Adjust(c.slots...)
	}
}

// End ends the use of the store, and of the completion, which is kept for another request unless access logs still look at
// costs of bodies.
func (c *Completion) End() {
	c.session.End()
	if !c.reads {
		clear(c.charges)
		*c = Completion{charges: c.charges[:0]}
		completions.Put(c)
	}
}
