package redisstore_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestStepOfTheClockIsTold: the store tells by how much the clock of its Redis has stepped.
func TestStepOfTheClockIsTold(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	proxy := faultproxy.Start(t, server.Addr())
	var ahead atomic.Int64 // nanoseconds
	proxy.Rewrite(func(command string, reply []byte) []byte {
		var size, fraction, seconds, micros int64
		if _, err := fmt.Sscanf(string(reply), "*2\r\n$%d\r\n%d\r\n$%d\r\n%d\r\n", &size, &seconds, &fraction, &micros); command != "time" || err != nil {
			return reply
		}
		now := time.Unix(seconds, micros*1000).Add(time.Duration(ahead.Load()))
		text := fmt.Sprint(now.Nanosecond() / 1000)
		return fmt.Appendf(nil, "*2\r\n$10\r\n%d\r\n$%d\r\n%s\r\n", now.Unix(), len(text), text)
	})
	options := at(server)
	options.Address = proxy.Addr()
	s := open(t, options)
	examine := func(want time.Duration) {
		t.Helper()
		patient.Until(t, "a step of "+want.String(), func() bool { // an answer that is late says nothing
			c := s.Examine(t.Context()).Servers[0]
			off := c.ClockStep - want
			return c.Trouble == "" && c.ClockTook > 0 && max(off, -off) < time.Second
		})
	}
	examine(0)
	ahead.Store(int64(-2 * time.Hour))
	examine(-2 * time.Hour)
	ahead.Add(int64(24 * time.Hour))
	examine(24 * time.Hour)
}
