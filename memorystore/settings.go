package memorystore

import "cmp"

// Apply changes how many keys are kept: 0 is [DefaultMaxKeys]. Keys above a lower bound stay until they expire. The returned function
// goes back to the number before, unless another one was applied since.
func (s *Store) Apply(maxKeys int) (revert func()) {
	before := s.most.Swap(&maxKeys)
	return func() { s.most.CompareAndSwap(&maxKeys, before) }
}

func (s *Store) maxKeys() int { return cmp.Or(*s.most.Load(), DefaultMaxKeys) }
