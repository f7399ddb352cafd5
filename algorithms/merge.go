package algorithms

// Merges implements [Merger].
func (TokenBucket) Merges(Params) bool { return true }

// Merges implements [Merger]. In a queue each request has a turn of its own.
func (LeakyBucket) Merges(p Params) bool { return p[4] == 0 }

// Merges implements [Merger].
func (FixedWindow) Merges(Params) bool { return true }

// Merges implements [Merger].
func (SlidingWindowCounter) Merges(Params) bool { return true }
