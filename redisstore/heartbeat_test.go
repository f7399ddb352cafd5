package redisstore

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestBeats: a store says that it lives when it has been open for a second, and every five
// seconds from then on, and farewell in the end. One that is closed at once, as for a config
// that is only looked at, leaves no trace.
func TestBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lives []any
		eval := func(_ context.Context, _, _ string, args ...any) (int64, error) {
			lives = append(lives, args[1])
			return 3, nil
		}
		for _, c := range []struct {
			open time.Duration
			want []any // for how long it is to count, by beat
		}{
			{0, nil},
			{time.Second - 1, nil},
			{time.Second, []any{int64(15_000), int64(6_000)}},
			{6 * time.Second, []any{int64(15_000), int64(15_000), int64(6_000)}},
			{11*time.Second - 1, []any{int64(15_000), int64(15_000), int64(6_000)}},
		} {
			lives = nil
			p := startHeartbeat(eval, func(error) {}, "instances", "")
			time.Sleep(c.open)
			synctest.Wait()
			if want := map[bool]int{true: 3, false: 1}[c.want != nil]; p.instances() != want {
				t.Errorf("open for %v: %d instances, want %d", c.open, p.instances(), want)
			}
			p.leave()
			p.leave() // a second time it does nothing
			if !slices.Equal(lives, c.want) {
				t.Errorf("open for %v: told to count for %v ms, want %v", c.open, lives, c.want)
			}
		}
	})
}
