package node

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// leastStep is the least step of a clock that is told: less is what clocks are corrected by in passing.
	leastStep = 500 * time.Millisecond

	// blurred is how long an answer may take and still say what time it is.
	blurred = 500 * time.Millisecond
)

// clock compares the clock of Redis with those of this machine, again and again, and so notices its steps.
type clock struct {
	mu   sync.Mutex
	last reading
	size time.Duration // of the last step, which was seen at
	at   time.Time
}

// reading is the time that Redis told, with those of this machine's clocks at that moment: its wall clock, and the
// monotonic one, as the time since it began. They may be wrong by slack.
type reading struct {
	redis, wall time.Time
	monotonic   time.Duration
	slack       time.Duration
}

// began is when the monotonic clock began.
var began = time.Now()

// read takes note of the time that Redis told between two moments.
func (c *clock) read(redis, from, to time.Time) {
	took := to.Sub(from)
	if took > blurred {
		return
	}
	middle := from.Add(took / 2)
	c.note(reading{redis, middle.Round(0), middle.Sub(began), took / 2})
}

func (c *clock) note(now reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.redis.IsZero() {
		if step := now.step(&c.last); max(step, -step)-now.slack-c.last.slack > leastStep {
			c.size, c.at = step, now.wall
		}
	}
	c.last = now
}

// step returns by how much more the clock of Redis has moved on than this machine's. While this machine sleeps,
// its monotonic clock stands still and that of Redis does not. So a step forth must be one by the wall clock, too.
func (r *reading) step(last *reading) time.Duration {
	moved := r.redis.Sub(last.redis)
	step := moved - (r.monotonic - last.monotonic)
	if step > 0 {
		return max(0, min(step, moved-r.wall.Sub(last.wall)))
	}
	return step
}

// Step returns by how much the clock of Redis last stepped forth, or back if it is negative, and when this was
// noticed. It returns zeros if that was not seen. If Redis is not a Cluster, one master that follows another is the same clock.
func (n *Node) Step() (step time.Duration, at time.Time) {
	n.clock.mu.Lock()
	defer n.clock.mu.Unlock()
	return n.clock.size, n.clock.at
}

// Clock returns how far the clock of Redis is ahead of this machine's, within half of the time
// that the answer took.
func (n *Node) Clock(ctx context.Context) (ahead, took time.Duration, err error) {
	return n.askTime(func(cmd redis.Cmder) error { return n.Process(ctx, cmd, false) })
}

// askTime is [Node.Clock] over any connection. The time that it took is also known if Redis answered with an error.
func (n *Node) askTime(process func(redis.Cmder) error) (ahead, took time.Duration, err error) {
	cmd := redis.NewTimeCmd(context.Background(), "time")
	from := time.Now()
	err = process(cmd)
	to := time.Now()
	took = to.Sub(from)
	if err != nil {
		return 0, took, err
	}
	n.clock.read(cmd.Val(), from, to)
	return cmd.Val().Sub(from.Add(took / 2)), took, nil
}
