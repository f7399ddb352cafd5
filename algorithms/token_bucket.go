package algorithms

// TokenBucket is a bucket that holds burst tokens. In each window, events of them come
// back: evenly with refill smooth, or all at once at the end of the window with refill
// interval, where windows are counted from the first request after the bucket was full. A
// request takes its cost in tokens, or is refused.
//
// With refill smooth it admits at most burst + rate x time in any time, and is the same
// limit as GCRA with a tolerance of burst. With refill interval, up to 2 x burst - 1 events
// can pass around a refill.
//
// Source: J. Turner, "New directions in communications", IEEE Communications
// Magazine 24(10), 1986; GCRA: ITU-T I.371, annex A.
type TokenBucket struct{ buckets }

// Name implements [Algorithm].
func (TokenBucket) Name() string { return "token_bucket" }

// Prepare implements [Algorithm]. For the parameters see prepareBucket.
func (a TokenBucket) Prepare(l Limit) (Params, error) {
	return prepareBucket(l, a.Name(), supports{window: true, burst: true, refill: true, hold: true})
}
