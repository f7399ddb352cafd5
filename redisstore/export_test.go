package redisstore

import "time"

// NewWithClock is New with the script's time read from a key, in microseconds, and
// with keys that outlive any test: a test's time does not pass for Redis.
func NewWithClock(options Options, key string) (*Store, error) {
	s, err := New(options)
	if err == nil {
		s.script = newScript("{ 0, redis.call('GET', '"+key+"') }", time.Hour)
	}
	return s, err
}

// Key is where Redis keeps a state.
var Key = (*Store).key

// ScriptText is what Redis gets to run.
func (s *Store) ScriptText() string { return s.script.text }
