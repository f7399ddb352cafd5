package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/keys"
)

const (
	// firstBeat is when a store that was opened is sure to be in use: a config that is only
	// validated is no instance. Leases are renewed and connections looked after at other moments: if two of
	// these fell together, chance would say which comes first, and no simulation could be repeated.
	firstBeat = 1050 * time.Millisecond

	// beatInterval is how often a process reports that it lives, and beatTTL how long it
	// counts after that.
	beatInterval = 5 * time.Second
	beatTTL      = 3 * beatInterval

	// leaveTTL is how long a process counts after it has closed its store. It may have another
	// store, with other options, which reports within an interval.
	leaveTTL = beatInterval + time.Second

	// beatTimeout and leaveTimeout bound a beat, and how long the last one may hold up
	// the closing of the store.
	beatTimeout  = time.Second
	leaveTimeout = 100 * time.Millisecond
)

// heartbeat reports to the fleet that this process lives, and learns how many processes do. No
// request waits for it. While Redis is away the last number holds.
type heartbeat struct {
	eval    func(ctx context.Context, script, key string, args ...any) (int64, error)
	warn    func(error)
	counted func(processes int64) // is told each new number
	key     string
	name    string

	announced func(name string) string // the key of what a process announces
	text      atomic.Pointer[string]   // to announce; nil: nothing
	changed   chan struct{}            // has an element when there is a new text
	telling   sync.Mutex               // held while the text is under way
	written   *string                  // the text that Redis was last sent

	seen    atomic.Int64
	present atomic.Bool // the process has been counted
	quit    chan struct{}
	once    sync.Once
	done    chan struct{}
}

// startHeartbeat starts to report, until leave. An error that Redis answers goes to warn. If the
// name is empty, the process gets one of its own.
func startHeartbeat(eval func(ctx context.Context, script, key string, args ...any) (int64, error), warn func(error), counted func(int64), keys keys.Prefix, name string) *heartbeat {
	h := &heartbeat{
		eval:      eval,
		warn:      warn,
		counted:   counted,
		key:       keys.Instances(),
		name:      cmp.Or(name, rand.Text()),
		announced: keys.Announcement,
		changed:   make(chan struct{}, 1),
		quit:      make(chan struct{}),
		done:      make(chan struct{}),
	}
	go h.run()
	return h
}

// instances is how many processes were last seen, at least this one.
func (h *heartbeat) instances() int { return max(1, int(h.seen.Load())) }

func (h *heartbeat) run() {
	defer close(h.done)
	timer := time.NewTimer(firstBeat)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			h.beat(beatTTL, beatTimeout)
			timer.Reset(beatInterval)
		case <-h.changed:
			if h.present.Load() { // else the first beat brings it
				h.tell(beatTTL, beatTimeout)
			}
		case <-h.quit:
			return
		}
	}
}

// leave ends the reports. A second call does nothing.
func (h *heartbeat) leave() {
	h.once.Do(func() {
		close(h.quit)
		<-h.done
		if h.present.Load() {
			h.beat(leaveTTL, leaveTimeout)
		}
	})
}

// beat has this process counted for a while, and learns how many there are.
func (h *heartbeat) beat(life, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	seen, err := h.eval(ctx, lua.Beat, h.key, h.name, life.Milliseconds(), beatTTL.Milliseconds())
	if err != nil {
		// That Redis is away shows when it is asked for decisions.
		if errors.As(err, new(redis.Error)) {
			h.warn(err)
		}
		return
	}
	h.seen.Store(seen)
	h.counted(seen)
	h.present.Store(true)
	h.tell(life, timeout)
}

// announce sets the text that others can read.
func (h *heartbeat) announce(text string) {
	h.text.Store(&text)
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// tell keeps the text in Redis for a while. An unchanged one is only renewed, unless Redis has lost
// it. If it fails, the next beat tries again.
func (h *heartbeat) tell(life, timeout time.Duration) {
	h.telling.Lock()
	defer h.telling.Unlock()
	text := h.text.Load()
	if text == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	key := h.announced(h.name)
	if text == h.written {
		if found, err := h.eval(ctx, announceScript, key, life.Milliseconds(), ""); err != nil || found == 1 {
			return
		}
	}
	if _, err := h.eval(ctx, announceScript, key, life.Milliseconds(), *text); err == nil {
		h.written = text
	}
}
