package lend

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// Account is the state of one key under one limit.
type Account interface {
	// Decide decides whether a cost fits at now if so much more was charged. It changes nothing.
	Decide(now, cost, more int64) algorithms.Decision

	// Charge charges a cost at an instant, whether it fits or not.
	Charge(at, cost int64)

	// Lasts returns for how long something counts, in microseconds, if so much is charged at an
	// instant.
	Lasts(at, cost int64) int64
}

// most is a limit that everything fits in.
const most = maxExact

// Counter is the account of an [algorithms.Counter].
type Counter struct {
	Algorithm algorithms.Counter
	Params    algorithms.Params
	State     algorithms.State
}

// charged returns the state after a charge, and the decision on it if everything fits.
func (c *Counter) charged(at, cost int64) (algorithms.State, algorithms.Decision) {
	p := c.Params
	p[0] = most
	return c.Algorithm.Take(c.State, p, at, cost)
}

// Decide implements [Account].
func (c *Counter) Decide(now, cost, more int64) algorithms.Decision {
	s := c.State
	if more > 0 {
		s, _ = c.charged(now, more)
	}
	_, d := c.Algorithm.Take(s, c.Params, now, cost)
	return d
}

// Charge implements [Account].
func (c *Counter) Charge(at, cost int64) {
	if cost > 0 {
		c.State, _ = c.charged(at, cost)
	}
}

// Lasts implements [Account].
func (c *Counter) Lasts(at, cost int64) int64 {
	_, d := c.charged(at, cost)
	return d.ResetAfter.Microseconds()
}

// Log is the account of an [algorithms.Recorder].
type Log struct {
	Algorithm algorithms.Recorder
	Params    algorithms.Params
	Log       *algorithms.Log
}

// Decide implements [Account].
func (l *Log) Decide(now, cost, more int64) algorithms.Decision {
	log := l.Log
	if more > 0 {
		log = log.Clone()
		l.Algorithm.Record(log, l.Params, now, more)
	}
	return l.Algorithm.Decide(log, l.Params, now, cost)
}

// Charge implements [Account].
func (l *Log) Charge(at, cost int64) {
	if cost > 0 {
		l.Algorithm.Record(l.Log, l.Params, at, cost)
	}
}

// Lasts implements [Account].
func (l *Log) Lasts(at, cost int64) int64 {
	log := l.Log.Clone()
	if cost > 0 {
		l.Algorithm.Record(log, l.Params, at, cost)
	}
	p := l.Params
	p[0] = most
	return l.Algorithm.Decide(log, p, at, 0).ResetAfter.Microseconds()
}

// micros is a wait in microseconds, as the Lua ports have it.
func micros(d time.Duration) int64 {
	if d == algorithms.Never {
		return -1
	}
	return d.Microseconds()
}
