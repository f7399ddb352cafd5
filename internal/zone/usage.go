package zone

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/sums"
)

// Usage says in which windows it is summed what keys use. Windows begin with a day in UTC.
type Usage struct {
	Length time.Duration
	Keep   int // how many windows are kept
}

// WindowOf returns the window of a zone that a time is in. There must be a Usage.
func (s *Spec) WindowOf(at time.Time) sums.Window {
	seconds := int64(s.Usage.Length / time.Second)
	return sums.Window{Zone: s.Name, Length: s.Usage.Length, Keep: s.Usage.Keep, From: at.Unix() / seconds * seconds}
}
