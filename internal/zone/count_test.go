package zone_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// TestGroupIsReadOnDemand: the placeholder of the option group is read only while somebody looks.
func TestGroupIsReadOnDemand(t *testing.T) {
	template, err := key.NewGroup("{plugin.asn}")
	if err != nil {
		t.Fatal(err)
	}
	z := zone.Zone{Spec: zone.Spec{Group: "{plugin.asn}", GroupTemplate: template}, Stats: new(stats.Counters)}
	reads, repl := 0, caddy.NewEmptyReplacer()
	repl.Map(func(name string) (any, bool) {
		if name != "plugin.asn" {
			return nil, false
		}
		reads++
		return 64496, true
	})
	r := placeholder.RequestOf((&http.Request{Header: make(http.Header)}).WithContext(context.WithValue(t.Context(), caddy.ReplacerCtxKey, repl)))
	z.Count(&r, "key", "", outcome.Allowed, stats.Untimed)
	if reads != 0 {
		t.Errorf("it was read %d times, and nobody looks", reads)
	}
	z.Stats.Groups.Look(z.Group)
	z.Count(&r, "key", "", outcome.Limited, stats.Untimed)
	top, _, _ := z.Stats.Groups.Look(z.Group).Top(0.01)
	if reads != 1 || len(top) != 1 || top[0].Value != "64496" || top[0].Refused.AtLeast != 1 {
		t.Errorf("it was read %d times: %+v", reads, top)
	}
}
