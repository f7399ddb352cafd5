package redisstore

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestBeats: a store sends its first heartbeat when it has been open for a second, one every five
// seconds from then on, and a farewell in the end. A store that is closed at once, as for a
// config that is only checked, leaves no trace.
func TestBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lives []any
		eval := func(_ context.Context, _ string, _ []string, args ...any) ([]any, error) {
			lives = append(lives, args[1])
			return []any{int64(3), int64(0), int64(0)}, nil
		}
		for _, c := range []struct {
			open time.Duration
			want []any // for how long each heartbeat counts
		}{
			{0, nil},
			{firstBeat - 1, nil},
			{firstBeat, []any{int64(15_000), int64(6_000)}},
			{firstBeat + beatInterval, []any{int64(15_000), int64(15_000), int64(6_000)}},
			{firstBeat + 2*beatInterval - 1, []any{int64(15_000), int64(15_000), int64(6_000)}},
		} {
			lives = nil
			p := startHeartbeat(eval, func(error) {}, func(int64) {}, "rl", "x")
			time.Sleep(c.open)
			synctest.Wait()
			if want := map[bool]int{true: 3, false: 1}[c.want != nil]; p.instances() != want {
				t.Errorf("open for %v: %d instances, want %d", c.open, p.instances(), want)
			}
			p.leave()
			p.leave() // the second call does nothing
			if !slices.Equal(lives, c.want) {
				t.Errorf("open for %v: told to count for %v ms, want %v", c.open, lives, c.want)
			}
		}
	})
}
