package pool

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// Health notices when a store stops answering and when it is back, and likewise when it is
// full. It says each once, whichever handlers use it.
type Health struct {
	store string // what the log calls it
	Down  condition
	full  condition // it answers, but has no room for new keys

	Errors map[string]*atomic.Int64 // by kind; the map does not change

	mu        sync.Mutex
	listeners map[*listener]struct{}
}

// listener is told of changes: that the store answers again (nil), or why it does not.
type listener struct{ notify func(cause error) }

// RecoveryTime is how long a store must answer without fail to count as back, so that one
// which answers now and then, as to a breaker's probes, does not write a line each time.
const RecoveryTime = time.Second

// condition is something that lasts as long as it is met again within quiet. Times are
// nanoseconds since the process began.
type condition struct {
	active      atomic.Bool
	since, Last atomic.Int64
}

// begin takes note that it was met, and reports whether it begins.
func (t *condition) begin(now int64) bool {
	t.Last.Store(now)
	if !t.active.CompareAndSwap(false, true) {
		return false
	}
	t.since.Store(now)
	return true
}

// end takes note that it was not met, and reports whether it is over, and how long it was.
func (t *condition) end(now int64) (after time.Duration, over bool) {
	over = t.active.Load() && now-t.Last.Load() > int64(RecoveryTime) && t.active.CompareAndSwap(true, false)
	return time.Duration(now - t.since.Load()), over
}

// clockStart is when the clock of this package began.
var clockStart = time.Now()

func newHealth(name string) *Health {
	s := &Health{store: name, Errors: make(map[string]*atomic.Int64), listeners: make(map[*listener]struct{})}
	for _, kind := range store.Failures() {
		s.Errors[kind] = new(atomic.Int64)
	}
	return s
}

// Report takes note of an answer (nil) or the lack of one.
func (s *Health) Report(err error, logger *zap.Logger) {
	if err == nil && !s.Down.active.Load() && !s.full.active.Load() {
		return
	}
	now, full := int64(time.Since(clockStart)), errors.Is(err, store.ErrFull)
	name := zap.String("store", s.store)
	if err != nil {
		s.Errors[store.Failure(err)].Add(1)
	}
	switch {
	case full:
		if s.full.begin(now) {
			logger.Warn("the rate limit store is full: this Caddy decides new keys alone, with its share of the limits", name, zap.Error(err))
		}
	case err != nil:
		if s.Down.begin(now) {
			logger.Error("the rate limit store does not answer", name, zap.Error(err))
			s.notify(err)
		}
		return
	default:
		if after, over := s.full.end(now); over {
			logger.Info("the rate limit store has room again", name, zap.Duration("after", after))
		}
	}
	if after, over := s.Down.end(now); over {
		logger.Info("the rate limit store answers again", name, zap.Duration("after", after))
		s.notify(nil)
	}
}

// Answers tells the state: whether the store is taken to answer.
func (s *Health) Answers() bool { return !s.Down.active.Load() }

// ErrorCount is how many requests met an error of that kind, see [store.Failures].
func (s *Health) ErrorCount(kind string) int64 { return s.Errors[kind].Load() }

// OnChange has a function told of changes until stop is called. It runs on the goroutine of
// the request that noticed, so it must not wait.
func (s *Health) OnChange(tell func(cause error)) (stop func()) {
	w := &listener{tell}
	s.mu.Lock()
	s.listeners[w] = struct{}{}
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		delete(s.listeners, w)
		s.mu.Unlock()
	}
}

func (s *Health) notify(cause error) {
	s.mu.Lock()
	watchers := make([]*listener, 0, len(s.listeners))
	for w := range s.listeners {
		watchers = append(watchers, w)
	}
	s.mu.Unlock()
	for _, w := range watchers {
		w.notify(cause)
	}
}
