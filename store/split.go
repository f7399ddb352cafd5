package store

// Split is a rule's part for one of n processes that count apart, such that all of them
// together admit no more than the rule does: events and burst divided by n, rounded
// down, but at least 1 where they were. Windows and leases stay, and so do the states: the
// shares of all n count in those of the whole, though a bucket's rate is another one, for
// a process has one share at a time and a new one must not begin anew. It keeps the last
// one it made, so that asking again for the same n costs nothing.
func (r *Rule) Split(n int) *Rule {
	if n <= 1 {
		return r
	}
	if kept := r.shared.Load(); kept != nil && kept.n == n {
		return kept.rule
	}
	limit := r.limit
	limit.Events, limit.Burst = part(limit.Events, n), part(limit.Burst, n)
	rule, err := NewRule(r.zone, r.algorithm, limit, r.salt)
	if err != nil {
		// A burst that came back slowly may do so too slowly when the events were rounded
		// down. Without one it has that of its events.
		limit.Burst = 0
		if rule, err = NewRule(r.zone, r.algorithm, limit, r.salt); err != nil {
			return r
		}
	}
	rule.states = r.states
	r.shared.Store(&share{n, rule})
	return rule
}

// share is the part that was asked for last.
type share struct {
	n    int
	rule *Rule
}

func part(whole int64, n int) int64 {
	if whole == 0 {
		return 0
	}
	return max(1, whole/int64(n))
}
