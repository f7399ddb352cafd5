package topology

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// silentAfter is how long after its first failure a server counts as silent when it fails again. It is asked again
// so soon.
const silentAfter = 3 * time.Second

// question is what a server is asked about where the states are.
type question[A any] struct {
	address string
	ask     func(ctx context.Context) (A, error)
}

// survey asks all servers at once, and returns the answers as they come. Once there is one, the others have some
// patience; what they answer later only shows that they are not silent. A server is not asked again before that.
func survey[A any](d *discovery, patience time.Duration, questions []question[A]) (answers []A, errs []error) {
	type result struct {
		address string
		answer  A
		err     error
	}
	results := make(chan result, len(questions))
	waiting := 0
	d.roll.keep(func(address string) bool {
		return slices.ContainsFunc(questions, func(q question[A]) bool { return q.address == address })
	})
	for _, q := range questions {
		if !d.roll.begin(q.address) {
			continue
		}
		waiting++
		d.running.Go(func() {
			ctx, cancel := context.WithTimeout(d.quitting, refreshTimeout)
			defer cancel()
			answer, err := q.ask(ctx)
			if d.quitting.Err() == nil {
				d.roll.end(q.address, err)
			}
			results <- result{q.address, answer, err}
		})
	}
	var late <-chan time.Time
	for ; waiting > 0; waiting-- {
		select {
		case r := <-results:
			if r.err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", r.address, r.err))
				continue
			}
			answers = append(answers, r.answer)
			if late == nil {
				late = time.After(patience)
			}
		case <-late:
			return answers, errs
		case <-d.quitting.Done():
			return answers, append(errs, store.ErrClosed)
		}
	}
	return answers, errs
}

// roll is which servers are asked where the states are, and which of them do not say it.
type roll struct {
	logger func() *zap.Logger

	mu      sync.Mutex
	servers map[string]*asked
}

// asked is a server that is asked.
type asked struct {
	owes   bool // an answer
	failed store.Silence
	silent bool
}

// keep forgets the servers that are no longer asked.
func (r *roll) keep(still func(address string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for address, a := range r.servers {
		if !still(address) {
			delete(r.servers, address)
			r.tellEnd(a, "a server of the rate limit store that was silent is no longer asked")
		}
	}
}

// begin records that a server is being asked. It reports false if that still owes an answer.
func (r *roll) begin(address string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.servers[address]
	if a == nil {
		if r.servers == nil {
			r.servers = make(map[string]*asked)
		}
		a = new(asked)
		r.servers[address] = a
	}
	begins := !a.owes
	a.owes = true
	return begins
}

// end records what has come of asking a server.
func (r *roll) end(address string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.servers[address]
	if a == nil {
		return
	}
	a.owes = false
	if err == nil {
		r.tellEnd(a, "a server of the rate limit store answers again")
		*a = asked{}
		return
	}
	if a.failed.Err == nil {
		a.failed = store.Silence{Address: address, Since: time.Now()}
	}
	a.failed.Err = node.Clip(node.Advise(err, false))
	if !a.silent && time.Since(a.failed.Since) >= silentAfter {
		a.silent = true
		r.logger().Warn("a server of the rate limit store is silent: requests are decided without it, but a failover may need it",
			zap.String("address", address), zap.Error(a.failed.Err))
	}
}

// tellEnd logs that a server is not silent any more, if it was.
func (r *roll) tellEnd(a *asked, message string) {
	if a.silent {
		r.logger().Info(message, zap.String("address", a.failed.Address), zap.Duration("after", time.Since(a.failed.Since)))
	}
}

// complete reports whether all have answered.
func (r *roll) complete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.servers {
		if a.owes || a.failed.Err != nil {
			return false
		}
	}
	return true
}

// Silent returns the servers that are silent, by address.
func (r *roll) Silent() (all []store.Silence) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.servers {
		if a.silent {
			all = append(all, a.failed)
		}
	}
	slices.SortFunc(all, func(a, b store.Silence) int { return strings.Compare(a.Address, b.Address) })
	return all
}
