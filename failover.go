package caddyratelimit

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
)

// What on_store_error can be.
const (
	allowOnError = "allow"
	denyOnError  = "deny"
)

// health notices when a store stops answering and when it is back, and says each once.
type health struct {
	failing   atomic.Bool
	lastError atomic.Int64 // nanoseconds since the process began
	since     atomic.Int64
}

// quiet is how long a store must answer without fail to count as back, so that one
// which answers now and then does not write a line each time.
const quiet = time.Second

var processStart = time.Now()

// report takes note of an answer (nil) or the lack of one.
func (s *health) report(err error, policy string, logger *zap.Logger) {
	if err == nil && !s.failing.Load() {
		return
	}
	now := int64(time.Since(processStart))
	if err != nil {
		s.lastError.Store(now)
		if s.failing.CompareAndSwap(false, true) {
			s.since.Store(now)
			logger.Error("the rate limit store does not answer",
				zap.String("on_store_error", policy), zap.Error(err))
		}
		return
	}
	if now-s.lastError.Load() > int64(quiet) && s.failing.CompareAndSwap(true, false) {
		logger.Info("the rate limit store answers again",
			zap.Duration("after", time.Duration(now-s.since.Load())))
	}
}

var errNoStore = errors.New("rate limit store does not answer")

// deny answers for a store that does not: the fault is ours, so it is no 429. Caddy
// logs each error of this kind, at the rate of the requests; so it is one only where
// error routes want it.
func deny(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Retry-After", "1")
	server, _ := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if server == nil || server.Errors != nil && len(server.Errors.Routes) > 0 {
		return caddyhttp.Error(http.StatusServiceUnavailable, errNoStore)
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	return nil
}

// detached is a request's context that does not end when the client leaves.
type detached struct{ context.Context }

func (detached) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
func (detached) Done() <-chan struct{}                   { return nil }
func (detached) Err() error                              { return nil }
