package admin

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

// TestExpire: a running zone is warned about a week before its limit ends, and ends at the very time.
func TestExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		template, err := key.New("", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		const day = 24 * time.Hour
		z, err := zone.New(zone.Spec{
			Name: "z", Template: template, MissingKey: zone.MissingShare, Note: "T-4711", Cost: limit.Amount{Number: 1},
			Limit:   limit.Limit{MaxEvents: &limit.Amount{Number: 1}, Window: limit.Window{Duration: caddy.Duration(time.Hour)}},
			Expires: &zone.Expiry{At: time.Now().Add(8 * day), Then: zone.ThenIgnore},
		}, new(stats.Counters))
		if err != nil {
			t.Fatal(err)
		}
		core, logged := observer.New(zap.WarnLevel)
		var c Config
		c.Add(Handler{Zones: []*zone.Zone{z}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go c.Expire(ctx, zap.New(core))
		for _, step := range []struct {
			after   time.Duration
			rollout string
			logged  string // the beginnings of the lines so far
		}{
			{day - time.Second, "", ""},
			{time.Minute, "", "it expires on"},
			{7*day - 2*time.Minute, "", "it expires on"},
			{time.Minute + time.Second, "expired", "it expires on, it has expired on"},
			{7 * day, "expired", "it expires on, it has expired on"},
		} {
			time.Sleep(step.after)
			synctest.Wait()
			var lines []string
			for _, e := range logged.All() {
				lines = append(lines, e.Message[:strings.Index(e.Message, " on ")+len(" on")])
				if e.ContextMap()["note"] != "T-4711" || e.ContextMap()["zone"] != "z" {
					t.Errorf("fields %v", e.ContextMap())
				}
			}
			if got := strings.Join(lines, ", "); got != step.logged || z.Rollout() != step.rollout {
				t.Errorf("after %v: rollout %q, logged %q, want %q, %q", step.after, z.Rollout(), got, step.rollout, step.logged)
			}
		}
	})
}
