package doctor

import (
	"fmt"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// nearlyFull is the share of memory, or of keys, from which on there is a warning, in percent.
	nearlyFull = 90

	mayNotAsk = "the user may not run INFO"
)

// memory compares the memory of servers with what they may use.
func memory(s *Store) (all []result) {
	all = trouble(store.TroubleMemory, giveMemory.With())(s)
	described, unknown := s.described()
	if unknown {
		all = append(all, cannotSay(mayNotAsk, giveInfo.With())...)
	}
	for _, c := range described {
		switch {
		case c.Trouble == store.TroubleMemory:
		case c.MaxMemory == 0:
			all = append(all, warn(boundMemory.With(), "%suses %s, and nothing bounds its memory", s.of(c), bytes(c.Memory))...)
		case c.Memory >= c.MaxMemory/100*nearlyFull:
			all = append(all, warn(giveMemory.With(), "%suses %s of %s", s.of(c), bytes(c.Memory), bytes(c.MaxMemory))...)
		default:
			all = append(all, ok("%suses %s of %s", s.of(c), bytes(c.Memory), bytes(c.MaxMemory))...)
		}
	}
	return all
}

// eviction finds servers that forget clients which are refused.
func eviction(s *Store) (all []result) {
	described, unknown := s.described()
	if unknown {
		all = cannotSay(mayNotAsk, giveInfo.With())
	}
	for _, c := range described {
		switch {
		case c.Evicts == "noeviction":
			all = append(all, ok("%sremoves no keys (noeviction)", s.of(c))...)
		case c.Evicted > 0:
			all = append(all, fail(advice.NoEviction.With(), "%shas removed %d keys (%s): each frees a client that was refused", s.of(c), c.Evicted, c.Evicts)...)
		case c.Evicts == "volatile-ttl":
			all = append(all, ok("%shas removed no keys so far (volatile-ttl)", s.of(c))...)
		default:
			all = append(all, warn(advice.NoEviction.With(), "%sremoves keys when its memory is full (%s), which frees clients that are refused", s.of(c), c.Evicts)...)
		}
	}
	return all
}

// keys compares the keys of a store in memory with what it may have.
func keys(s *Store) []result {
	e := s.Examined
	switch {
	case e == nil || e.MaxKeys == 0:
		return nil
	case e.Sharing:
		return fail(advice.RaiseKeys.With(), "%d of %d keys: new keys share states, and are refused because of each other", e.Keys, e.MaxKeys)
	case e.Keys >= e.MaxKeys/100*nearlyFull:
		return warn(advice.RaiseKeys.With(), "%d of %d keys", e.Keys, e.MaxKeys)
	}
	return ok("%d of %d keys", e.Keys, e.MaxKeys)
}

// bytes formats a number of bytes.
func bytes(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MB", n>>20)
	}
	return fmt.Sprintf("%d kB", n>>10)
}
