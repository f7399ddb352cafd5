package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// awayStore is a store that may not answer requests.
type awayStore struct {
	*memorystore.Store
	away *atomic.Bool
}

func (s awayStore) Identity() (string, error)  { return fmt.Sprintf("away:%p", s.away), nil }
func (s awayStore) Open() (store.Store, error) { return s, nil }
func (s awayStore) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if s.away.Load() {
		return errors.New("no answer")
	}
	return s.Store.Take(ctx, checks, decisions)
}

// summedZone is a zone with usage, of so many requests an hour.
func summedZone(t *testing.T, name string, events int64, onError string) *zone.Zone {
	t.Helper()
	template, err := key.New("{http.request.header.X-Key}", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	spec := zone.Spec{
		Name: name, Template: template, Cost: limit.Amount{Number: 2}, MissingKey: zone.MissingShare, OnStoreError: onError, DryRun: name == "dry",
		Limit: limit.Limit{MaxEvents: &limit.Amount{Number: 2 * events}, Window: limit.Window{Duration: caddy.Duration(1000 * time.Hour)}, Algorithm: "sliding_window_log"},
		Usage: &zone.Usage{Length: 24 * time.Hour, Keep: 3},
	}
	spec.PassesOver = name == "soft"
	z, err := zone.New(spec, new(stats.Counters))
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// TestWhatUsageCounts: a request counts where the limit was asked, if it passes all zones, and a refusal in the zone that
// refuses. What passes because the store does not answer counts too. A look at what would happen counts nothing.
func TestWhatUsageCounts(t *testing.T) {
	m, err := memorystore.New(memorystore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := awayStore{m, new(atomic.Bool)}
	ref, err := pool.Acquire(s)
	if err != nil {
		t.Fatal(err)
	}
	local, err := pool.Acquire(&pool.Local{StandsFor: ref.ID})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(ref.Release(), local.Release()); err != nil {
			t.Error(err)
		}
	}()
	zones := []*zone.Zone{
		summedZone(t, "many", 5, zone.AllowOnError), summedZone(t, "few", 2, zone.LocalOnError), summedZone(t, "dry", 1, zone.AllowOnError),
		summedZone(t, "soft", 1, zone.AllowOnError),
	}
	config := limiter.Config{Zones: zones, Store: ref, Local: local, Logger: zap.NewNop()}
	l := limiter.New(config)
	send := func(l *limiter.Limiter, want bool) {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		v := l.Decide(caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil))
		defer v.Release()
		if v.Passes() != want {
			t.Errorf("passes: %v", !want)
		}
	}
	expect := func(want string) {
		t.Helper()
		if err := ref.Store.Sums.Send(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, z := range zones {
			now := time.Now()
			yesterday := now.Truncate(24 * time.Hour).Add(-24 * time.Hour)
			found, _, err := s.ReadUsage(t.Context(), &store.UsageQuery{Zone: z.Name, Length: 24 * time.Hour, From: yesterday, To: now}, "", 10)
			if err != nil {
				t.Fatal(err)
			}
			var sum store.Usage
			for _, u := range found {
				sum.Requests, sum.Cost, sum.Refused = sum.Requests+u.Requests, sum.Cost+u.Cost, sum.Refused+u.Refused
			}
			got = append(got, fmt.Sprintf("%s %d %d %d", z.Name, sum.Requests, sum.Cost, sum.Refused))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("got %s, want %s", text, want)
		}
	}
	send(l, true)
	expect("many 1 2 0, few 1 2 0, dry 1 2 0, soft 1 2 0")
	send(l, true) // the dry run would refuse it
	expect("many 2 4 0, few 2 4 0, dry 1 2 1, soft 2 4 0")
	send(l, false)
	expect("many 2 4 0, few 2 4 1, dry 1 2 2, soft 2 4 0")

	peeking := pool.NewPeeking(t.Context(), ref, new(clock.Imagined))
	asks := config
	asks.Store = peeking.Ref
	send(limiter.New(asks), false)
	expect("many 2 4 0, few 2 4 1, dry 1 2 2, soft 2 4 0")

	s.away.Store(true)
	send(l, true)
	send(l, true)
	expect("many 4 8 0, few 4 8 1, dry 3 6 2, soft 4 8 0")
	send(l, false) // by the local memory, so it has not passed in the other zones either
	expect("many 4 8 0, few 4 8 2, dry 3 6 2, soft 4 8 0")
}
