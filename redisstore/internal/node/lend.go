package node

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
)

// Requests of zones that lend have a script of their own. They wait for calls like all others, and
// are sent together with them: both scripts in one pipeline.

// evaluateAll makes a call of requests of which some or all are of zones that lend. If one of the
// scripts fails, only its requests have that error.
func (n *Node) evaluateAll(ctx context.Context, c *call) error {
	careful := n.careful()
	lend := n.lendCommand(ctx, false, c.lending, careful)
	if c.Checks() == 0 {
		return n.finishLend(ctx, c.lending, lend, careful, n.Process(ctx, lend, false), false)
	}
	others := n.evalsha(ctx, c.Batch)
	_, _ = n.pipelined(ctx, func(p redis.Pipeliner) error {
		return errors.Join(p.Process(ctx, others), p.Process(ctx, lend))
	})
	err := n.finish(ctx, c.Batch, others, closedOr(others.Err()), false)
	lendErr := n.finishLend(ctx, c.lending, lend, careful, closedOr(lend.Err()), false)
	if err != nil && lendErr != nil {
		return err
	}
	for _, r := range c.requests {
		switch {
		case err != nil && len(r.Lend) == 0:
			r.Err = err
		case lendErr != nil && len(r.Lend) > 0:
			r.Err = lendErr
		}
	}
	return nil
}

// LendIfReady makes a call of requests of zones that lend, unless the node is known not to answer. See
// evaluate for asking.
func (n *Node) LendIfReady(ctx context.Context, requests []*Request, asking bool) error {
	if err := n.breaker.refuses(ctx); err != nil {
		return err
	}
	ctx = n.Silent(ctx)
	begun := n.breaker.now()
	return n.breaker.run(func() (struct{}, error) {
		careful := n.careful()
		cmd := n.lendCommand(ctx, false, requests, careful)
		return n.breaker.judge(begun, n.finishLend(ctx, requests, cmd, careful, n.Process(ctx, cmd, asking), asking))
	})
}

// finishLend takes the answer of a call, as finish does.
func (n *Node) finishLend(ctx context.Context, requests []*Request, cmd *redis.StringCmd, careful bool, err error, asking bool) error {
	again, err := repeat(err, &careful, func(byText bool) error {
		cmd = n.lendCommand(ctx, byText, requests, careful)
		return n.Process(ctx, cmd, asking)
	})
	if err != nil {
		return Unwritten(err)
	}
	unable, err := readLend(requests, cmd.Val(), careful)
	if err == nil && careful {
		n.noteCare(unable, again)
	}
	return err
}

// lendCommand makes the command of a call of requests of zones that lend, which are decided one after
// the other: by the script's text, or by its digest.
func (n *Node) lendCommand(ctx context.Context, byText bool, requests []*Request, careful bool) *redis.StringCmd {
	script := n.config.Script.Load().Lend
	args, text := append(make([]any, 0, 5+2*len(requests)), "evalsha", script.Digest, 0), make([]byte, 0, 200*len(requests))
	if byText {
		args[0], args[1] = "eval", script.Text
	}
	for _, r := range requests {
		text, args = protocol.AppendLend(text, args, r.Lend)
	}
	args[2] = len(args) - 3
	args = append(args, text)
	if careful {
		args = append(args, protocol.Care)
	}
	return redis.NewStringCmd(ctx, args...)
}

// readLend reads the answers, and why Redis cannot write, if it cannot. Each request has its own error, if any.
func readLend(requests []*Request, text string, careful bool) (unable *protocol.UnwrittenError, err error) {
	reply := protocol.NewLendReply(text, careful)
	for _, r := range requests {
		if r.Answers, err = reply.Group(r.Lend); err != nil {
			return nil, err
		}
		r.Err = r.Answers[0].Err
	}
	return reply.Unable, reply.End()
}
