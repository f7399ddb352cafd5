package link

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
)

// Server is what a link asks of a Redis, as [node.Node] does it. Asking is for a slot of a Cluster that is about to
// become the server's own.
type Server interface {
	// Ready returns nil, or why there is no use in asking now.
	Ready(ctx context.Context) error

	// Do has a request answered, in a call with others.
	Do(ctx context.Context, r *node.Request, asking bool) error

	// DoAll makes one call for requests whose callers do not wait. Each gets its error.
	DoAll(ctx context.Context, requests []*node.Request, asking bool)

	// Process carries out another command.
	Process(ctx context.Context, cmd redis.Cmder, asking bool) error
}

// Servers know which of them has a key. The methods are those of a topology.
type Servers interface {
	OneSlot() bool
	Slot(key string) uint16
	Node(ctx context.Context, slot uint16) (Server, error)
	Redirect(ctx context.Context, from Server, slot uint16, err error, hop int) (to Server, asking bool, left error)
	ReportFailure()
	Close() error
}

// Process has a command carried out by the server that has a key. The command is made again for
// each server that is asked.
func (l *Link) Process(ctx context.Context, key string, command func() redis.Cmder) (cmd redis.Cmder, err error) {
	err = l.follow(ctx, l.Servers.Slot(key), func(s Server, asking bool) error {
		cmd = command()
		return s.Process(ctx, cmd, asking)
	})
	if err != nil {
		return nil, err
	}
	return cmd, nil
}

// TextCommand makes a command for [Link.Process] that runs a script, which answers a text.
func (l *Link) TextCommand(ctx context.Context, script, key string, args ...any) *redis.StringCmd {
	return redis.NewStringCmd(ctx, append([]any{"eval", l.Script.Load().Finish(script), 1, key}, args...)...)
}

// follow asks the server that has a slot, wherever the servers say that it is.
func (l *Link) follow(ctx context.Context, slot uint16, ask func(s Server, asking bool) error) error {
	s, err := l.Servers.Node(ctx, slot)
	if err != nil {
		return err
	}
	return l.redirected(ctx, s, slot, ask(s, false), ask)
}

// redirected makes a call again where the servers say, as long as they do.
func (l *Link) redirected(ctx context.Context, from Server, slot uint16, err error, ask func(s Server, asking bool) error) error {
	for hop := 1; err != nil; hop++ {
		to, asking, left := l.Servers.Redirect(ctx, from, slot, err, hop)
		if left != nil {
			return left
		}
		from, err = to, ask(to, asking)
	}
	return nil
}
