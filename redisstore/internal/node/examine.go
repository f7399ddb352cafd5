package node

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Clock returns how far the clock of Redis is ahead of this machine's, within half of the time
// that the answer took.
func (n *Node) Clock(ctx context.Context) (ahead, took time.Duration, err error) {
	cmd := redis.NewTimeCmd(ctx, "time")
	start := time.Now()
	if err := n.Process(ctx, cmd, false); err != nil {
		return 0, 0, err
	}
	took = time.Since(start)
	return cmd.Val().Sub(start.Add(took / 2)), took, nil
}
