package redisstore

import "go.uber.org/zap"

// warnDamaged says that a stored state was damaged.
func (s *Store) warnDamaged(zone string) {
	if s.damaged.Allow() {
		s.logger().Warn("a state in Redis is not one of this version and counts as none; it is replaced with the next charge",
			zap.String("zone", zone), zap.String("key_prefix", s.prefix))
	}
}

// warnUncounted says that Redis does not count this process among those that live.
func (s *Store) warnUncounted(cause error) {
	if s.uncounted.Allow() {
		s.logger().Warn("redis does not count this process, so on_store_error local may divide limits by a wrong number of instances",
			zap.String("key_prefix", s.prefix), zap.Error(cause))
	}
}

// warnFar says that a Redis is too far away for the timeout.
func (s *Store) warnFar(l *lane) {
	if trip := l.trip.is(); 3*trip > s.timeout && s.distant.Allow() {
		s.logger().Warn("redis is far away for the timeout: under load, requests that wait for each other may not be decided in time; use a nearer redis, or raise timeout to three times the round trip",
			zap.String("address", l.address), zap.Duration("round_trip", trip), zap.Duration("timeout", s.timeout))
	}
}

// warnLost says that corrections were given up, if there are more than the told so far,
// and returns how many have been told now. The last word does not wait for its minute.
func (s *Store) warnLost(told uint64, last bool) uint64 {
	lost, cause := s.returns.losses()
	if lost == told || !last && !s.losing.Allow() {
		return told
	}
	s.logger().Warn("refunds and late costs were given up that Redis has not confirmed; nothing is carried out twice",
		zap.Uint64("count", lost-told), zap.String("key_prefix", s.prefix), zap.Error(cause))
	return lost
}
