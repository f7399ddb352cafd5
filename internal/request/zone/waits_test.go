package zone

import (
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
)

// TestWaits: how long a refusal holds, what its client is told, and when there is more, for each kind of refusal.
func TestWaits(t *testing.T) {
	const never, window = algorithms.Never, time.Minute
	rate, slots := QuotaPolicy{Numbers: config.Numbers{Window: config.Window{Duration: caddy.Duration(window)}}}, QuotaPolicy{Slots: true}
	for _, c := range []struct {
		name   string
		policy *QuotaPolicy
		d      algorithms.Decision
		cost   int64
		want   Waits
	}{
		{"a limit", &rate, algorithms.Decision{Quota: 5, RetryAfter: 3 * time.Second, NextAfter: time.Second}, 2, Waits{Retry: 3 * time.Second, Told: 3 * time.Second, Next: time.Second}},
		{"a place before there is more", &rate, algorithms.Decision{Quota: 5, RetryAfter: time.Second, NextAfter: 3 * time.Second}, 1, Waits{Retry: time.Second, Told: 3 * time.Second, Next: 3 * time.Second}},
		{"too dear", &rate, algorithms.Decision{Quota: 5, RetryAfter: never}, 6, Waits{Retry: never}},
		{"a limit of 0", &rate, algorithms.Decision{RetryAfter: never}, 1, Waits{Retry: never, Told: window}},
		{"banned for good", &rate, algorithms.Decision{Quota: 5, RetryAfter: never, Banned: true}, 6, Waits{Retry: never, Told: window}},
		{"a slot", &slots, algorithms.Decision{Quota: 5, RetryAfter: 30 * time.Second, NextAfter: time.Second}, 1, Waits{Retry: time.Second, Told: time.Second, Slot: true}},
		{"too many slots", &slots, algorithms.Decision{Quota: 5, RetryAfter: never}, 6, Waits{Retry: never, Slot: true}},
		{"banned from slots", &slots, algorithms.Decision{Quota: 5, RetryAfter: time.Hour, NextAfter: time.Hour, Banned: true}, 1, Waits{Retry: time.Hour, Told: time.Hour}},
	} {
		if got := c.policy.Waits(&c.d, c.cost); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
