package pool

import (
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/throttle"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Health tracks whether a store answers. It logs when that changes, whichever handlers use the store, and now and then that the
// store is full or this process too busy. Times are those of [clock.System].
type Health struct {
	store       string       // the store's name in the log
	since       atomic.Int64 // since when the store counts as not answering; 0 if it answers
	last        atomic.Int64 // when it last did not answer
	busy        atomic.Int64 // when this process last had no time to ask
	full, hurry throttle.Throttle

	consequence atomic.Pointer[string]

	Errors map[string]*atomic.Int64 // by kind; the map does not change
}

// recoveryTime is how long a store must answer without an error to count as answering again. A
// store that answers now and then, as to the probes of a breaker, would otherwise log two lines
// each time.
const recoveryTime = time.Second

// silence is after how long without a request's error a store that counts as not answering is probed.
const silence = 3 * time.Second

func newHealth(name string) *Health {
	h := &Health{store: name, Errors: make(map[string]*atomic.Int64)}
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
	if err == nil && h.since.Load() == 0 {
		return
	}
	now, name := int64(clock.System{}.Now()), zap.String("store", h.store)
	switch {
	case errors.Is(err, store.ErrBusy): // which says nothing about the store
		if h.busy.Store(now); h.hurry.Allow() {
			logger.Warn("this Caddy is too busy to ask the rate limit store: more requests come than it has time for, and some are refused with status 503", name)
		}
		return
	case err != nil && !errors.Is(err, store.ErrFull):
		h.fail(now, err, logger, name)
		return
	case err != nil && h.full.Allow():
		logger.Warn("the rate limit store is full: this instance decides alone, with its share of the limits", name, zap.Error(err))
	}
	if since := h.since.Load(); since != 0 && now-h.last.Load() > int64(recoveryTime) && h.since.CompareAndSwap(since, 0) {
		logger.Info("the rate limit store answers again", name, zap.Duration("after", time.Duration(now-since)))
	}
}

// fail records that the store did not answer.
func (h *Health) fail(now int64, err error, logger *zap.Logger, name zap.Field) {
	h.last.Store(now)
	if !h.since.CompareAndSwap(0, now) {
		return
	}
	logger.Error("the rate limit store does not answer", name, zap.Error(err))
	if text := h.consequence.Load(); text != nil {
		logger.Warn(*text, name)
	}
}

// unknown reports whether the store counts as not answering, but no request has failed for a while: probes must tell then. A
// server that is only too slow for requests answers them, so each would end what the next request begins.
func (h *Health) unknown() bool { return !h.Answers() && ago(&h.last) > silence }

// Answers reports whether the store counts as answering.
func (h *Health) Answers() bool { return h.since.Load() == 0 }

// DownSince returns since when the store has not answered, or the zero time if it does.
func (h *Health) DownSince() (since time.Time) {
	if !h.Answers() {
		since = time.Now().Add(-ago(&h.since))
	}
	return since
}

// Busy reports whether this process was too busy to ask the store within the last minute.
func (h *Health) Busy() bool { return h.busy.Load() > 0 && ago(&h.busy) <= time.Minute }

func ago(at *atomic.Int64) time.Duration { return clock.System{}.Now() - time.Duration(at.Load()) }

// ErrorCount returns how many requests met an error of that kind, see [store.Failures].
func (h *Health) ErrorCount(kind string) int64 { return h.Errors[kind].Load() }
