package refusals

import "time"

// SetClock sets the clock of a cache.
func (c *Cache) SetClock(clock func() time.Duration) { c.clock = clock }
