package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/keys"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// firstBeat is when a store that was opened is sure to be in use: a config that is only
	// validated is no instance. Leases are renewed and connections looked after at other moments: if two of
	// these fell together, chance would say which comes first, and no simulation could be repeated.
	firstBeat = 1050 * time.Millisecond

	// beatInterval is how often a process reports that it lives, and beatTTL how long it
	// counts after that.
	beatInterval = store.CountInterval
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
	eval   evaluate
	warn   func(error)
	looked func()           // learns that somebody looks at the board
	marked func(mark int64) // gets the mark of the last change of a network
	keys   keys.Prefix
	name   string
	narrow atomic.Bool // the user has no right for the keys beside that of processes

	text    atomic.Pointer[string] // to announce; nil: nothing
	written atomic.Pointer[string] // the text that Redis has, as far as is known

	seen atomic.Int64 // 0: the process has not been counted
	quit chan struct{}
	once sync.Once
	done chan struct{}
}

// evaluate runs a script whose keys have one slot.
type evaluate func(ctx context.Context, script string, keys []string, args ...any) ([]any, error)

// startHeartbeat starts to report, until leave. An error that Redis answers goes to warn.
func startHeartbeat(eval evaluate, warn func(error), looked func(), marked func(int64), keys keys.Prefix, name string) *heartbeat {
	h := &heartbeat{
		eval:   eval,
		warn:   warn,
		looked: looked,
		marked: marked,
		keys:   keys,
		name:   name,
		quit:   make(chan struct{}),
		done:   make(chan struct{}),
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
		if h.seen.Load() > 0 {
			h.beat(leaveTTL, leaveTimeout)
		}
	})
}

// beat has this process counted for a while, and learns how many there are, and whether somebody looks at the board. What
// it announces is kept in the same call.
func (h *heartbeat) beat(life, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	all, text, fresh := []string{h.keys.Instances()}, h.text.Load(), ""
	if text != nil && !h.narrow.Load() {
		all = append(all, h.keys.Announcement(h.name), h.keys.Looked())
		if text != h.written.Load() {
			fresh = *text
		}
	}
	answer, err := h.eval(ctx, lua.Beat.Text(), all, h.name, life.Milliseconds(), beatTTL.Milliseconds(), fresh)
	if len(all) > 1 && err != nil && (node.LacksRight(err) || redis.HasErrorPrefix(err, "TRYAGAIN")) {
		h.narrow.Store(node.LacksRight(err))
		answer, err = h.eval(ctx, lua.Beat.Text(), all[:1], h.name, life.Milliseconds(), beatTTL.Milliseconds(), "")
	}
	if err != nil {
		// That Redis is away shows when it is asked for decisions.
		if errors.As(err, new(redis.Error)) {
			h.warn(err)
		}
		return
	}
	var numbers [4]int64
	for i := range min(len(numbers), len(answer)) {
		numbers[i], _ = answer[i].(int64)
	}
	h.seen.Store(numbers[0])
	h.marked(numbers[3])
	if numbers[1] == 0 {
		text = nil // the next beat brings it
	}
	h.written.Store(text)
	if numbers[2] == 1 {
		h.looked()
	}
}
