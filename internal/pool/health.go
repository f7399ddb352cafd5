package pool

import (
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// Health tracks whether a store answers, and whether it is full. It logs each change once,
// whichever handlers use the store.
type Health struct {
	store string // the store's name in the log
	down  condition
	full  condition // the store answers, but is full
	busy  condition // this process has no time to ask

	consequence atomic.Pointer[string]

	Errors map[string]*atomic.Int64 // by kind; the map does not change
}

// recoveryTime is how long a store must answer without an error to count as answering again. A
// store that answers now and then, as to the probes of a breaker, would otherwise log two lines
// each time.
const recoveryTime = time.Second

// silence is after how long without a request's error a store that counts as not answering is probed.
const silence = 3 * time.Second

// condition is a state of a store that ends when it has not been seen for [recoveryTime]. Times
// are nanoseconds since clockStart.
type condition struct {
	level       zapcore.Level // of its log line
	begins      string        // what the log says when it begins, and when it is over
	over        string
	active      atomic.Bool
	since, last atomic.Int64
}

// begin records that the condition was seen, and reports whether it is new.
func (c *condition) begin(now int64) bool {
	c.last.Store(now)
	if !c.active.CompareAndSwap(false, true) {
		return false
	}
	c.since.Store(now)
	return true
}

// end records that the condition was not seen. It reports whether the condition has just ended,
// and how long it has lasted.
func (c *condition) end(now int64) (after time.Duration, over bool) {
	over = c.active.Load() && now-c.last.Load() > int64(recoveryTime) && c.active.CompareAndSwap(true, false)
	return time.Duration(now - c.since.Load()), over
}

// clockStart is the zero of this package's monotonic clock.
var clockStart = time.Now()

func newHealth(name string) *Health {
	h := &Health{store: name, Errors: make(map[string]*atomic.Int64)}
	h.down.level, h.down.begins = zap.ErrorLevel, "the rate limit store does not answer"
	h.down.over = "the rate limit store answers again"
	h.full.level, h.full.begins = zap.WarnLevel, "the rate limit store is full: this instance decides alone, with its share of the limits"
	h.full.over = "the rate limit store has room again"
	h.busy.level = zap.WarnLevel
	h.busy.begins = "this Caddy is too busy to ask the rate limit store: more requests come than it has time for, and some are refused with status 503"
	h.busy.over = "this Caddy has time again to ask the rate limit store"
	for _, kind := range store.Failures() {
		h.Errors[kind] = new(atomic.Int64)
	}
	return h
}

// Means sets what it means for the zones if the store does not answer. The log says it then.
func (h *Health) Means(consequence string) { h.consequence.Store(&consequence) }

// Report records the result of a request's call: nil if the store answered.
func (h *Health) Report(err error, logger *zap.Logger) {
	if err != nil {
		h.Errors[store.Failure(err)].Add(1)
	}
	h.note(err, logger)
}

// note records whether the store answered, also where no request has asked.
func (h *Health) note(err error, logger *zap.Logger) {
	if err == nil && !h.down.active.Load() && !h.full.active.Load() && !h.busy.active.Load() {
		return
	}
	now, name := int64(time.Since(clockStart)), zap.String("store", h.store)
	seen, unseen := &h.down, []*condition(nil)
	switch {
	case err == nil:
		seen, unseen = nil, []*condition{&h.full, &h.busy, &h.down}
	case errors.Is(err, store.ErrFull):
		seen, unseen = &h.full, []*condition{&h.down}
	case errors.Is(err, store.ErrBusy):
		seen = &h.busy
	}
	if seen != nil && seen.begin(now) {
		logger.Log(seen.level, seen.begins, name, zap.Error(err))
		if seen == &h.down {
			if text := h.consequence.Load(); text != nil {
				logger.Warn(*text, name)
			}
		}
	}
	for _, c := range unseen {
		if after, over := c.end(now); over {
			logger.Info(c.over, name, zap.Duration("after", after))
		}
	}
}

// unknown reports whether the store counts as not answering, but no request has failed for a while: probes must tell then. A
// server that is only too slow for requests answers them, so each would end what the next request begins.
func (h *Health) unknown() bool {
	return h.down.active.Load() && int64(time.Since(clockStart))-h.down.last.Load() > int64(silence)
}

// Answers reports whether the store counts as answering.
func (h *Health) Answers() bool { return !h.down.active.Load() }

// DownSince returns since when the store has not answered, or the zero time if it does.
func (h *Health) DownSince() (since time.Time) {
	if h.down.active.Load() {
		since = clockStart.Add(time.Duration(h.down.since.Load()))
	}
	return since
}

// Busy reports whether this process was too busy to ask the store within the last minute.
func (h *Health) Busy() bool {
	last := h.busy.last.Load()
	return last > 0 && time.Since(clockStart)-time.Duration(last) <= time.Minute
}

// ErrorCount returns how many requests met an error of that kind, see [store.Failures].
func (h *Health) ErrorCount(kind string) int64 { return h.Errors[kind].Load() }
