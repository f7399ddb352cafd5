package redisstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// maxLendCalls is how many calls of lend.lua are under way at once.
	maxLendCalls = 8

	// maxLendBatch bounds the requests of one call.
	maxLendBatch = 64
)

// lendRequest is what one request asks of zones that lend.
type lendRequest struct {
	ops     []protocol.LendOp
	answers []protocol.LendAnswer
	err     error
	done    chan struct{}
}

// lendBatcher lets requests share calls, as package node does: a call is made when none is under way,
// or when as many requests wait as are under way.
type lendBatcher struct {
	mu              sync.Mutex
	waiting         []*lendRequest
	calls, underWay int
}

// begin takes the requests of the next call, if it is time for one. The lock is held.
func (b *lendBatcher) begin() []*lendRequest {
	n := min(len(b.waiting), maxLendBatch)
	if n == 0 || b.calls == maxLendCalls || b.calls > 0 && len(b.waiting) < b.underWay {
		return nil
	}
	batch := b.waiting[:n:n]
	if b.waiting = b.waiting[n:]; len(b.waiting) == 0 {
		b.waiting = nil
	}
	b.calls++
	b.underWay += n
	return batch
}

// callLend has Redis decide operations on different keys of one slot, together.
func (s *Store) callLend(ctx context.Context, ops []protocol.LendOp) ([]protocol.LendAnswer, error) {
	for i := range ops {
		if ops[i].Ask.Cost < 0 {
			return nil, fmt.Errorf("cost must be at least 0, got %d", ops[i].Ask.Cost)
		}
	}
	r := &lendRequest{ops: ops, done: make(chan struct{})}
	if s.keys.cluster {
		s.makeLendCall(ctx, []*lendRequest{r})
		return r.answers, r.err
	}
	b := &s.lendBatcher
	b.mu.Lock()
	b.waiting = append(b.waiting, r)
	busy := b.calls > 0
	b.mu.Unlock()
	if busy {
		runtime.Gosched() // others may come, and share the call
	}
	b.mu.Lock()
	batch := b.begin()
	b.mu.Unlock()
	_, hurried := ctx.Deadline() // a call may last longer
	switch {
	case batch != nil && hurried:
		go s.serveLend(batch)
	case batch != nil:
		s.serveLend(batch)
	}
	select {
	case <-r.done:
		return r.answers, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serveLend makes a call, and has another one made if it is time for it.
func (s *Store) serveLend(batch []*lendRequest) {
	s.makeLendCall(context.Background(), batch)
	b := &s.lendBatcher
	b.mu.Lock()
	b.calls--
	b.underWay -= len(batch)
	next := b.begin()
	b.mu.Unlock()
	if next != nil {
		go s.serveLend(next)
	}
}

// makeLendCall makes one call for several requests, which are decided one after the other.
func (s *Store) makeLendCall(ctx context.Context, batch []*lendRequest) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := s.runLend(ctx, batch)
	for _, r := range batch {
		if r.err = err; err == nil {
			r.err = r.answers[0].Err
		}
		close(r.done)
	}
}

// runLend runs the script, and reads the answers.
func (s *Store) runLend(ctx context.Context, batch []*lendRequest) error {
	keys, text := make([]any, 0, 2*len(batch)), make([]byte, 0, 200*len(batch))
	for _, r := range batch {
		text, keys = protocol.AppendLend(text, keys, r.ops)
	}
	script := s.lendingScript()
	run := func(command, script string) (redis.Cmder, error) {
		return s.process(ctx, batch[0].ops[0].Key, (*node.Node).ProcessIfReady, func() redis.Cmder {
			args := make([]any, 0, 4+len(keys))
			args = append(append(args, command, script, len(keys)), keys...)
			return redis.NewStringCmd(ctx, append(args, text)...)
		})
	}
	cmd, err := run("evalsha", script.Digest)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd, err = run("eval", script.Text)
	}
	if err != nil {
		if !errors.Is(err, store.ErrUnavailable) {
			s.topology.ReportFailure()
		}
		return node.Unwritten(err)
	}
	reply := protocol.NewLendReply(cmd.(*redis.StringCmd).Val())
	for _, r := range batch {
		if r.answers, err = reply.Group(r.ops); err != nil {
			return err
		}
		for i := range r.answers {
			if r.answers[i].Damaged {
				s.warnDamaged(r.ops[i].Rule.Zone())
			}
		}
	}
	return reply.End()
}
