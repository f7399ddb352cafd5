package gate

// seen remembers for 10 to 20 minutes which keys were served: a bit for each, in two generations. Its
// memory is 256 kB, however many keys there are. Keys that share a bit with one that was served count as
// served too. That makes them keys of their own a little early, and does no other harm.
type seen struct {
	now, before *[seenBits / 64]uint64
	turned      int64
}

const (
	seenBits  = 1 << 20
	seenTurns = 600e9 // ns
)

func (s *seen) has(id uint64) bool {
	i, bit := place(id)
	return s.now != nil && (s.now[i]|s.before[i])&bit != 0
}

func (s *seen) add(now int64, id uint64) {
	if s.now == nil {
		s.now, s.before = new([seenBits / 64]uint64), new([seenBits / 64]uint64)
		s.turned = now
	}
	if now-s.turned > seenTurns {
		s.now, s.before = s.before, s.now
		clear(s.now[:])
		s.turned = now
	}
	i, bit := place(id)
	s.now[i] |= bit
}

func place(id uint64) (i, bit uint64) { return id % seenBits / 64, 1 << (id % 64) }
