package node

import (
	"testing"
	"time"
)

// TestStep: a step of Redis's clock is noticed, and told apart from what else happens to clocks.
func TestStep(t *testing.T) {
	t.Parallel()
	const pause = 5 * time.Second
	for name, c := range map[string]struct {
		redis, wall, monotonic time.Duration // by how much the clocks move on
		slack                  time.Duration
		want                   time.Duration
	}{
		"none":                               {redis: pause, wall: pause, monotonic: pause},
		"corrected slowly":                   {redis: pause + 400*time.Millisecond, wall: pause, monotonic: pause},
		"forth":                              {redis: pause + time.Second, wall: pause, monotonic: pause, want: time.Second},
		"back":                               {redis: pause - time.Hour, wall: pause, monotonic: pause, want: -time.Hour},
		"back, with this machine's":          {redis: pause - time.Hour, wall: pause - time.Hour, monotonic: pause, want: -time.Hour},
		"this machine's steps back":          {redis: pause, wall: pause - time.Hour, monotonic: pause},
		"this machine's steps forth":         {redis: pause, wall: pause + time.Hour, monotonic: pause},
		"this machine sleeps":                {redis: time.Hour, wall: time.Hour, monotonic: pause},
		"forth while this machine sleeps":    {redis: 3 * time.Hour, wall: time.Hour, monotonic: pause, want: 2 * time.Hour},
		"an answer that may be that late":    {redis: pause + time.Second, wall: pause, monotonic: pause, slack: 600 * time.Millisecond},
		"by more than an answer may be late": {redis: pause - 2*time.Second, wall: pause, monotonic: pause, slack: 600 * time.Millisecond, want: -2 * time.Second},
	} {
		start := time.Now().Round(0)
		var k clock
		k.note(reading{redis: start, wall: start})
		k.note(reading{redis: start.Add(c.redis), wall: start.Add(c.wall), monotonic: c.monotonic, slack: c.slack})
		if k.size != c.want || k.at.IsZero() != (c.want == 0) {
			t.Errorf("%s: %v at %v, want %v", name, k.size, k.at, c.want)
		}
	}
	var k clock
	k.read(began, began, began.Add(time.Second))
	if !k.last.redis.IsZero() {
		t.Error("an answer that took a second says what time it is")
	}
}
