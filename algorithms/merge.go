package algorithms

// Merges implements [Merger].
func (TokenBucket) Merges(Params) bool { return true }

// Merges implements [Merger]. It is false for a queue, where each request has its own turn.
func (LeakyBucket) Merges(p Params) bool { return p[4] == 0 }

// Merges implements [Merger].
func (FixedWindow) Merges(Params) bool { return true }

// Merges implements [Merger].
func (SlidingWindowCounter) Merges(Params) bool { return true }
