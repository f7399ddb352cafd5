package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// probeTimeout bounds one probe.
	probeTimeout = 2 * time.Second

	// probeInterval is how often a store is probed that does not answer, at most.
	probeInterval = time.Second
)

// Probe asks the store's server until it answers, and logs that it does not, what that means, and
// that it does. A wrong password then shows without traffic. After that it asks while the store counts as not answering and
// no request tells. It returns when ctx is done.
func (r *Ref) Probe(ctx context.Context, logger *zap.Logger) {
	p, ok := r.Store.Store.(store.Shared)
	if !ok {
		return
	}
	for ctx.Err() == nil {
		r.probe(ctx, p, logger)
		select {
		case <-ctx.Done():
		case <-time.After(probeInterval):
		}
	}
}

// probe probes the store once, unless requests show whether it answers. A reload that keeps the store does not ask again: what a
// probe sends to a server that hangs is in the way of requests, which tell by themselves.
func (r *Ref) probe(ctx context.Context, p store.Shared, logger *zap.Logger) {
	s := r.Store
	s.probing.Lock() // of several configs, one probes at a time
	defer s.probing.Unlock()
	if s.answered && !s.Health.unknown() {
		return
	}
	server, err := probeOnce(ctx, p)
	if ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
		return
	}
	if s.Health.note(err, logger); err == nil && !s.answered {
		s.answered = true
		r.logServer(server, logger)
	}
}

// probeOnce turns a panic into an error, because no request waits whose panic Caddy would catch.
func probeOnce(ctx context.Context, p store.Shared) (server store.Condition, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return p.Probe(ctx)
}

// logServer logs what is known about a server that answers.
func (r *Ref) logServer(server store.Condition, logger *zap.Logger) {
	fields := []zap.Field{zap.String("store", Describe(r.Backend)), zap.Duration("round_trip", server.RoundTrip)}
	if server.Version != "" {
		fields = append(fields, zap.String("version", server.Version))
	}
	if fleet, ok := r.Store.Store.(store.Fleet); ok {
		fields = append(fields, zap.Int("instances", fleet.Instances()))
	}
	logger.Info("the rate limit store answers", fields...)
	if server.Evicts != "" {
		logger.Warn("the rate limit store removes keys when its memory is full, so clients that are refused get through again; "+advice.NoEviction.With().String(),
			zap.String("store", Describe(r.Backend)), zap.String("maxmemory_policy", server.Evicts))
	}
}
