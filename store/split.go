package store

// Split returns the rule for one of n processes that count separately, so that together they
// admit about what the rule does: events and burst are divided by n and rounded down, but
// stay at least 1 if they were. Windows and leases stay the same.
//
// The states stay the same, too, although the rate of a bucket changes its family: a process
// has one part at a time, and when n changes, the new part must not start from zero.
func (r *Rule) Split(n int) *Rule {
	if n <= 1 {
		return r
	}
	limit := r.limit
	limit.Events, limit.Burst = part(limit.Events, n), part(limit.Burst, n)
	rule, err := NewRule(r.zone, r.algorithm, limit, r.salt)
	if err != nil {
		// Because events are rounded down, a large burst may take too long to come back.
		// Without one, the burst is the events.
		limit.Burst = 0
		if rule, err = NewRule(r.zone, r.algorithm, limit, r.salt); err != nil {
			return r
		}
	}
	rule.states = r.states
	return rule
}

func part(whole int64, n int) int64 { return min(whole, max(1, whole/int64(n))) }
