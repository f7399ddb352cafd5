package caddyratelimit

import (
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/redisstore"
)

// health notices when a store stops answering and when it is back, and says each once,
// whichever handlers use it.
type health struct {
	store     string // what the log calls it
	failing   atomic.Bool
	lastError atomic.Int64 // nanoseconds since the process began
	since     atomic.Int64

	errors map[string]*atomic.Int64 // by kind; the map does not change

	mu       sync.Mutex
	watchers map[*watcher]struct{}
}

// watcher is told of changes: that the store answers again (nil), or why it does not.
type watcher struct{ tell func(cause error) }

// quiet is how long a store must answer without fail to count as back, so that one
// which answers now and then, as to a breaker's probes, does not write a line each time.
const quiet = time.Second

var processStart = time.Now()

func newHealth(store string) *health {
	s := &health{store: store, errors: make(map[string]*atomic.Int64), watchers: make(map[*watcher]struct{})}
	for _, kind := range redisstore.Kinds() {
		s.errors[kind] = new(atomic.Int64)
	}
	return s
}

// report takes note of an answer (nil) or the lack of one.
func (s *health) report(err error, logger *zap.Logger) {
	if err == nil && !s.failing.Load() {
		return
	}
	now := int64(time.Since(processStart))
	if err != nil {
		s.lastError.Store(now)
		s.errors[redisstore.Kind(err)].Add(1)
		if s.failing.CompareAndSwap(false, true) {
			s.since.Store(now)
			logger.Error("the rate limit store does not answer", zap.String("store", s.store), zap.Error(err))
			s.tell(err)
		}
		return
	}
	if now-s.lastError.Load() > int64(quiet) && s.failing.CompareAndSwap(true, false) {
		logger.Info("the rate limit store answers again",
			zap.String("store", s.store), zap.Duration("after", time.Duration(now-s.since.Load())))
		s.tell(nil)
	}
}

// answers tells the state: whether the store is taken to answer.
func (s *health) answers() bool { return !s.failing.Load() }

// errorCount is how many requests met an error of that kind, see [redisstore.Kinds].
func (s *health) errorCount(kind string) int64 { return s.errors[kind].Load() }

// watch has a function told of changes until stop is called. It runs on the goroutine of
// the request that noticed, so it must not wait.
func (s *health) watch(tell func(cause error)) (stop func()) {
	w := &watcher{tell}
	s.mu.Lock()
	s.watchers[w] = struct{}{}
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		delete(s.watchers, w)
		s.mu.Unlock()
	}
}

func (s *health) tell(cause error) {
	s.mu.Lock()
	watchers := make([]*watcher, 0, len(s.watchers))
	for w := range s.watchers {
		watchers = append(watchers, w)
	}
	s.mu.Unlock()
	for _, w := range watchers {
		w.tell(cause)
	}
}
