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
	lend := LendCommand(ctx, "evalsha", n.config.Script.Load(), c.lending)
	if c.Checks() == 0 {
		return n.finishLend(ctx, c, lend, n.Process(ctx, lend, false))
	}
	others := n.evalsha(ctx, c.Batch)
	_, _ = n.pipelined(ctx, func(p redis.Pipeliner) error {
		return errors.Join(p.Process(ctx, others), p.Process(ctx, lend))
	})
	err := n.finish(ctx, c.Batch, others, closedOr(others.Err()), false)
	lendErr := n.finishLend(ctx, c, lend, closedOr(lend.Err()))
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

// finishLend takes the answer of a call, as finish does.
func (n *Node) finishLend(ctx context.Context, c *call, cmd *redis.StringCmd, err error) error {
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = LendCommand(ctx, "eval", n.config.Script.Load(), c.lending)
		err = n.Process(ctx, cmd, false)
	}
	if err != nil {
		return Unwritten(err)
	}
	return ReadLend(c.lending, cmd)
}

// LendCommand makes the command of a call of requests of zones that lend, which are decided one after
// the other: eval, or evalsha.
func LendCommand(ctx context.Context, command string, script *protocol.Script, requests []*Request) *redis.StringCmd {
	script = script.Lending()
	args, text := append(make([]any, 0, 4+2*len(requests)), command, script.Digest, 0), make([]byte, 0, 200*len(requests))
	if command == "eval" {
		args[1] = script.Text
	}
	for _, r := range requests {
		text, args = protocol.AppendLend(text, args, r.Lend)
	}
	args[2] = len(args) - 3
	return redis.NewStringCmd(ctx, append(args, text)...)
}

// ReadLend reads the answers. Each request has its own error, if any.
func ReadLend(requests []*Request, cmd *redis.StringCmd) (err error) {
	reply := protocol.NewLendReply(cmd.Val())
	for _, r := range requests {
		if r.Answers, err = reply.Group(r.Lend); err != nil {
			return err
		}
		r.Err = r.Answers[0].Err
	}
	return reply.End()
}
