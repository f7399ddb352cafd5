package zone_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// TestExpiredZones: what comes after a limit is what its zone says, for limits of every kind.
func TestExpiredZones(t *testing.T) {
	for name, c := range map[string]struct{ zone, want string }{
		"not yet":           {`"max_events": 1, "window": "1h", "expires": {"at": "2099-01-01"}`, "200 429 429"},
		"ignored":           {`"max_events": 1, "window": "1h", "expires": {"at": "2020-01-01"}`, "200 200 200"},
		"a dry run":         {`"max_events": 1, "window": "1h", "expires": {"at": "2020-01-01", "then": "dry_run"}`, "200 200 200"},
		"kept":              {`"max_events": 1, "window": "1h", "expires": {"at": "2020-01-01", "then": "keep"}`, "200 429 429"},
		"a block":           {`"max_events": 1, "window": "1h", "block": [{"path": ["/"]}], "expires": {"at": "2020-01-01"}`, "200 200 200"},
		"a dry block":       {`"max_events": 1, "window": "1h", "block": [{"path": ["/"]}], "expires": {"at": "2020-01-01", "then": "dry_run"}`, "200 200 200"},
		"slots":             {`"algorithm": "concurrency", "max_events": 0, "expires": {"at": "2020-01-01"}`, "200 200 200"},
		"a queue":           {`"algorithm": "leaky_bucket", "mode": "queue", "max_events": 1, "window": "1h", "burst": 0, "expires": {"at": "2020-01-01"}`, "200 200 200"},
		"adaptive":          {`"algorithm": "adaptive", "max_concurrency": 1, "expires": {"at": "2020-01-01"}`, "200 200 200"},
		"enforced for some": {`"max_events": 0, "window": "1h", "enforce": 100, "expires": {"at": "2020-01-01", "then": "dry_run"}`, "200 200 200"},
		"plans":             {`"plan": {"of": "{http.vars.plan}", "plans": {"a": {"max_events": 1, "window": "1h"}}, "default": "a"}, "expires": {"at": "2020-01-01", "then": "dry_run"}`, "200 200 200"},
	} {
		h := caddytest.Load(t, `{"rate_limits": {"z": {`+c.zone+`}}}`)
		if got := caddytest.Statuses(t, h, 3); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		caddytest.CleanUp(t, h)
	}
}

// TestExpiry: the words about an expiry, and from when on people are warned.
func TestExpiry(t *testing.T) {
	at := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		before     time.Duration
		then, want string
		soon, over bool
	}{
		{8 * 24 * time.Hour, zone.ThenIgnore, "it expires on 2026-12-01 00:00 UTC, in 8 days; then requests do not meet it", false, false},
		{7 * 24 * time.Hour, zone.ThenKeep, "it expires on 2026-12-01 00:00 UTC, in 7 days; then its limit stays, until somebody decides", true, false},
		{time.Hour, zone.ThenDryRun, "it expires on 2026-12-01 00:00 UTC, in 1 hours; then it is a dry run", true, false},
		{0, zone.ThenIgnore, "it has expired on 2026-12-01 00:00 UTC: requests do not meet it", false, true},
	} {
		e := &zone.Expiry{At: at, Then: c.then}
		now := at.Add(-c.before)
		if soon, over := e.Due(now); e.State(now) != c.want || soon != c.soon || over != c.over {
			t.Errorf("%v before: got %q, %v, %v, want %q, %v, %v", c.before, e.State(now), soon, over, c.want, c.soon, c.over)
		}
	}
}
