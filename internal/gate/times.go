package gate

// times are moving means of how long slots were taken, and of failures.
type times struct {
	mean     float64 // ns
	square   float64 // mean of the square
	failures float64 // the share of requests that the upstream failed
}

// patience is after how many times the mean a client that leaves has left because the upstream is slow. One that leaves
// earlier says nothing of the upstream: else a client could open requests and leave, until the limit is 1.
const patience = 2

// Requests that take longer than outlier ns and than so many times the mean count as if they took that. So a single one
// does not change what is known of all.
const (
	outlier = 1e9
	beyond  = 10
)

// add adds a request, with its weight in the means.
func (t *times) add(took float64, a Answer, weight float64) {
	if a == Left && took < t.mean {
		return
	}
	slow := a == Failed || a == Left && took > patience*t.mean
	took = min(took, max(beyond*t.mean, outlier))
	if t.mean == 0 {
		t.mean, t.square = took, 2*took*took
	}
	t.mean += (took - t.mean) * weight
	t.square += (took*took - t.square) * weight
	failed := 0.0
	if slow {
		failed = 1
	}
	t.failures += (failed - t.failures) * weight
}

// slot is how long a slot is taken that one looks at: long requests are seen more often than short ones.
func (t *times) slot() float64 { return t.square / max(t.mean, 1) }

// spread is the variance of counts of answers, relative to that of a memoryless server.
func (t *times) spread() float64 { return min(max(t.square/(t.mean*t.mean)-1, 0.5), 10) }
