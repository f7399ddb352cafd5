package algorithms

// LeakyBucket is a bucket that holds burst events and leaks evenly, at events per window. A
// request pours its cost in, and is refused if the bucket would overflow.
//
// As a meter it is the mirror image of the token bucket. As a queue it delays requests: a
// request leaves when everything that was poured in before it has leaked out. So requests
// leave evenly spaced, in the order in which they came.
//
// Source: J. Turner, "New directions in communications", IEEE Communications
// Magazine 24(10), 1986 (the meter); A. S. Tanenbaum, "Computer Networks", section on
// traffic shaping (the queue).
type LeakyBucket struct{ buckets }

// Name implements [Algorithm].
func (LeakyBucket) Name() string { return "leaky_bucket" }

// Prepare implements [Algorithm]. For the parameters see prepareBucket.
func (a LeakyBucket) Prepare(l Limit) (Params, error) {
	return prepareBucket(l, a.Name(), supports{window: true, burst: true, mode: true, hold: true})
}
