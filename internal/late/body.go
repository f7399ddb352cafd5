package late

import (
	"errors"
	"net/http"
	"slices"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/usage"
)

// bodyCosts reads costs from the body of a response. Zones that read the same numbers share a reader.
type bodyCosts struct {
	readers []*usage.Reader
	failed  bool // the response is an error

	mu      sync.Mutex // because the access log may be written while error routes respond
	settled []settledCost
}

// settledCost is what happened to one charge.
type settledCost struct {
	zone         string
	result       stats.CostResult
	booked, cost int64
}

var errNoCost = errors.New("it has none of these numbers")

// bodyCost is the part of a late charge that depends on the body.
type bodyCost struct {
	reads  bool // the charge waits for the body
	reader *usage.Reader
	err    error // why the body cannot be decoded
}

// readsBody reports whether any charge depends on what the body of the response says.
func (c *Completion) readsBody() bool {
	return slices.ContainsFunc(c.charges, func(l charge) bool { return l.body.reads })
}

// openBody begins the body of a response. It reports whether its pieces must be passed to readBody.
func (c *Completion) openBody(status int, header http.Header) bool {
	if c.body == nil {
		return false
	}
	c.body.failed = status >= http.StatusBadRequest
	for i := range c.charges {
		l := &c.charges[i]
		if !l.body.reads {
			continue
		}
		for j := range c.charges[:i] {
			if other := &c.charges[j]; other.body.reader != nil && other.zone.Charge.Fields().String() == l.zone.Charge.Fields().String() {
				l.body.reader = other.body.reader
			}
		}
		if l.body.reader != nil || l.body.err != nil {
			continue
		}
		l.body.reader, l.body.err = usage.NewReader(l.zone.Charge.Fields(), header.Get("Content-Type"), header["Content-Encoding"]...)
		if l.body.err != nil {
			l.body.reader = nil
		} else if l.body.reader != nil {
			c.body.readers = append(c.body.readers, l.body.reader)
		}
	}
	return len(c.body.readers) > 0
}

// readBody reads the next piece of the body.
func (c *Completion) readBody(p []byte) {
	for _, r := range c.body.readers {
		_, _ = r.Write(p)
	}
}

// ending is how a response has ended.
type ending uint8

// The ways in which a response ends.
const (
	whole        ending = iota
	perhapsWhole        // it is not known whether it is whole
	brokenOff
)

// closeBody ends the body, and charges what the request has cost. A response that is not whole may not have
// said all of it.
func (c *Completion) closeBody(end ending) {
	if c.body == nil {
		return
	}
	c.body.readers = nil // of what an error route still writes, nothing is read
	for i := range c.charges {
		l := &c.charges[i]
		if !l.body.reads {
			continue
		}
		l.body.reads = false
		result, cost, err := l.bodyCost(c.body.failed, end)
		c.pay(l, cost)
		c.settle(l, result, cost)
		if err != nil && l.zone.UnclearCost.Allow() {
			l.warn(result, cost, err)
		}
	}
}

// warn logs that the response does not say what the request has cost, and of how many responses that is true since the
// process has started.
func (l *charge) warn(result stats.CostResult, cost int64, err error) {
	results, _ := l.zone.Stats.Costs.Read()
	_, unread, of := stats.Unread(results)
	logging.Logger().Warn("the response does not say what the request has cost", zap.String("zone", l.zone.Name),
		zap.String("json", l.zone.Charge.Fields().String()), zap.Int64("charged", cost), zap.Error(err),
		zap.String("result", stats.CostNames[result]), zap.Uint64("without_cost", unread), zap.Uint64("responses", of),
		zap.Stringer("fix", result.Fix()))
}

// bodyCost returns what the request has cost. The error says why the response does not say so. A response that
// is perhaps not whole costs no less than what was booked.
func (l *charge) bodyCost(failed bool, end ending) (result stats.CostResult, cost int64, err error) {
	var events, said int64
	found := false
	if r := l.body.reader; r != nil {
		if decoding := r.Close(); l.body.err == nil {
			l.body.err = decoding
		}
		events = r.Events()
		said, found, err = r.Cost()
		if r.Done() {
			end = whole
		}
	}
	from, booked := l.zone.Charge, l.booked.Cost
	switch {
	case end == brokenOff, end == perhapsWhole && !found && !failed:
		return stats.CostCutOff, from.BrokenOff.Of(booked, events, said), nil
	case l.body.err != nil:
		result, err = stats.CostEncoded, l.body.err
	case err != nil:
		result = stats.CostInvalid
	case found && end == perhapsWhole:
		return stats.CostRead, max(said, booked), nil
	case found:
		return stats.CostRead, said, nil
	case failed:
		return stats.CostFailed, booked, nil
	default:
		result, err = stats.CostUnknown, errNoCost
	}
	return result, from.Unknown.Of(booked, events, said), err
}

// settle counts what happened to a charge, and keeps it for the access log.
func (c *Completion) settle(l *charge, result stats.CostResult, cost int64) {
	l.zone.Stats.Costs.Add(result, cost)
	c.body.mu.Lock()
	defer c.body.mu.Unlock()
	c.body.settled = append(c.body.settled, l.settled(result, cost))
}

func (l *charge) settled(result stats.CostResult, cost int64) settledCost {
	return settledCost{zone: l.zone.Name, result: result, booked: l.booked.Cost, cost: cost}
}

// logCosts writes what has happened to the charges so far.
func (c *Completion) logCosts(to zapcore.ArrayEncoder) error {
	c.body.mu.Lock()
	defer c.body.mu.Unlock()
	for _, s := range c.body.settled {
		if err := to.AppendObject(s); err != nil {
			return err
		}
	}
	return nil
}

// logOpenCosts writes what the other charges will be if nothing more of the body comes. It ends the reading of a
// compressed body.
func (c *Completion) logOpenCosts(to zapcore.ArrayEncoder, end ending) error {
	for i := range c.charges {
		l := &c.charges[i]
		if !l.body.reads {
			continue
		}
		result, cost, _ := l.bodyCost(c.body.failed, end)
		if err := to.AppendObject(l.settled(result, cost)); err != nil {
			return err
		}
	}
	return nil
}

// MarshalLogObject implements [zapcore.ObjectMarshaler].
func (s settledCost) MarshalLogObject(to zapcore.ObjectEncoder) error {
	to.AddString("zone", s.zone)
	to.AddString("result", stats.CostNames[s.result])
	to.AddInt64("booked", s.booked)
	to.AddInt64("cost", s.cost)
	return nil
}
