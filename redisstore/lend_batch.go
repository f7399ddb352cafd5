package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// callLend has Redis decide operations on different keys of one slot, together. It shares the call with
// other requests, but in a Cluster.
func (s *Store) callLend(ctx context.Context, ops []protocol.LendOp) (answers []protocol.LendAnswer, err error) {
	for i := range ops {
		if ops[i].Ask.Cost < 0 {
			return nil, fmt.Errorf("cost must be at least 0, got %d", ops[i].Ask.Cost)
		}
	}
	r := s.newRequest()
	r.Lend = append(r.Lend, ops...)
	if s.keys.cluster {
		s.makeLendCall(ctx, []*node.Request{r})
		err = r.Err
	} else {
		if err = s.ready(ctx); err == nil {
			err = s.send(ctx, r)
		}
	}
	if err != nil {
		return nil, err // it may be under way still, so it is not used again
	}
	answers = r.Answers
	s.noteDamaged(r)
	s.free(r)
	return answers, nil
}

// noteDamaged warns of states that were damaged.
func (s *Store) noteDamaged(r *node.Request) {
	for i := range r.Answers {
		if r.Answers[i].Damaged {
			s.warnDamaged(r.Lend[i].Rule.Zone())
		}
	}
}

// makeLendCall makes one call for several requests, which are decided one after the other.
func (s *Store) makeLendCall(ctx context.Context, batch []*node.Request) {
	if err := s.runLend(ctx, batch); err != nil {
		for _, r := range batch {
			r.Err = err
		}
		return
	}
	for _, r := range batch {
		s.noteDamaged(r)
	}
}

// runLend runs the script, and reads the answers.
func (s *Store) runLend(ctx context.Context, batch []*node.Request) error {
	err := s.follow(ctx, batch[0].Lend[0].Key, func(n *node.Node, asking bool) error { return n.LendIfReady(ctx, batch, asking) })
	if err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrBusy) {
		s.topology.ReportFailure()
	}
	return err
}
