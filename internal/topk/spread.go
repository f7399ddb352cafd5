package topk

// Spread says how recent requests are spread over keys.
type Spread struct {
	Requests uint64

	// Keys is the number of keys that are known: all, or some hundreds of them. Repeated is how
	// many of these have certainly come more than once.
	Keys, Repeated int
}

// Spread returns how recent requests are spread over keys.
func (r *Recent) Spread() (s Spread) {
	known := make(map[uint64]bool) // by hash; true if the key has come more than once
	for _, c := range []*spanCounts{r.before.Load(), r.current.Load()} {
		if c == nil {
			continue
		}
		s.Requests += c.sketches[Requests].requests()
		c.sketches[Requests].each(func(hash uint64, k keyInfo) {
			_, again := known[hash]
			known[hash] = again || k.AtLeast > 1
		})
	}
	s.Keys = len(known)
	for _, repeated := range known {
		if repeated {
			s.Repeated++
		}
	}
	return s
}
