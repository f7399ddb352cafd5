package node

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Clock returns how far the clock of Redis is ahead of this machine's, within half of the time
// that the answer took.
func (n *Node) Clock(ctx context.Context) (ahead, took time.Duration, err error) {
	return askTime(func(cmd redis.Cmder) error { return n.Process(ctx, cmd, false) })
}

// askTime is [Node.Clock] over any connection. The time that it took is also known if Redis answered with an error.
func askTime(process func(redis.Cmder) error) (ahead, took time.Duration, err error) {
	cmd := redis.NewTimeCmd(context.Background(), "time")
	from := time.Now()
	err = process(cmd)
	if took = time.Since(from); err != nil {
		return 0, took, err
	}
	return cmd.Val().Sub(from.Add(took / 2)), took, nil
}
