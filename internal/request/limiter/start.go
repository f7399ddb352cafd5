package limiter

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// ErrNotStarted is the error of a request that came before its config had started, which then did not start.
var ErrNotStarted = errors.New("the config of this rate limit has not started")

// Start is the start of a config. Caddy may start a server before other apps, so requests may come before the stores that are
// required have answered, and before the options of the config apply. Such requests wait. A nil Start is over.
type Start struct {
	good  atomic.Bool // it is over, and the config runs
	over  chan struct{}
	once  sync.Once
	gone  <-chan struct{}
	limit time.Duration
}

// NewStart returns a start for which requests wait until End is called, but not longer than the limit. If gone is closed
// before, the config never starts.
func NewStart(gone <-chan struct{}, limit time.Duration) *Start {
	return &Start{over: make(chan struct{}), gone: gone, limit: limit}
}

// End ends the start, and reports whether the config runs. Only the first call counts.
func (s *Start) End(runs bool) {
	s.once.Do(func() {
		s.good.Store(runs)
		close(s.over)
	})
}

// ended reports whether the config runs.
func (s *Start) ended() bool { return s == nil || s.good.Load() }

// wait waits until the config runs. It returns ErrNotStarted if it does not, and ErrLeft if the client leaves before.
func (s *Start) wait(r *http.Request) error {
	if s.ended() {
		return nil
	}
	timer := time.NewTimer(s.limit)
	defer timer.Stop()
	select {
	case <-s.over:
	case <-s.gone:
	case <-timer.C:
	case <-r.Context().Done():
		return ErrLeft
	}
	if !s.good.Load() {
		return ErrNotStarted
	}
	return nil
}
