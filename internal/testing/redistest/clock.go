package redistest

import (
	"strconv"
	"strings"
	"time"
)

// Clock returns a function that gives scripts another clock: a Lua expression with a list of seconds and
// microseconds. A key then lives for the margin longer than its state is worth something, because a test's time does
// not pass for Redis.
func Clock(expression string, margin time.Duration) func(script string) string {
	seconds := int(margin.Seconds())
	return strings.NewReplacer(
		"redis.call('TIME')", expression,
		"1--[[MARGIN]]", strconv.Itoa(seconds),
		"2--[[MARGIN_S]]", strconv.Itoa(seconds+1),
		"1000--[[MARGIN_MS]]", strconv.Itoa(1000*seconds),
	).Replace
}

// KeyClock is a clock that a test sets, in microseconds, in a key. Keys outlive any test.
func KeyClock(key string) func(script string) string {
	return Clock("{ 0, redis.call('GET', '"+key+"') }", time.Hour)
}
