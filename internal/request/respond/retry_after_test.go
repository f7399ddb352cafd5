package respond

import (
	"testing"
	"time"
)

// TestRetryAfter: the wait is in whole seconds, rounded up. Without one there is no Retry-After. Jitter adds to it.
func TestRetryAfter(t *testing.T) {
	for wait, want := range map[time.Duration]int64{
		0: 0, time.Microsecond: 1, time.Second: 1, time.Second + 1: 2, 59*time.Second + 1: 60,
	} {
		if got := new(Responder).retryAfter(wait); got != want {
			t.Errorf("%v: got %d, want %d", wait, got, want)
		}
	}
	jittery := Responder{Config: Config{Jitter: 0.5}}
	seen := make(map[int64]bool)
	for range 1000 {
		got := jittery.retryAfter(10 * time.Second)
		if got < 10 || got > 15 {
			t.Fatalf("10s with jitter 0.5: got %d", got)
		}
		seen[got] = true
	}
	if len(seen) < 4 {
		t.Errorf("jitter gave only %v", seen)
	}
}
