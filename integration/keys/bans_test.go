package keys_test

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestBansOfAFleet: a key that hammers one Caddy is banned from all, until an operator lifts the
// ban or exempts the key.
func TestBansOfAFleet(t *testing.T) {
	t.Parallel()
	redisServer := redistest.Start(t)
	config := harness.Caddyfile("", `
		rate_limit {
			zone clients {
				key       {header.User}
				algorithm token_bucket 5/1s
				overrides
				ban       1h after 10 refusals in 10m up_to 1d
			}
			`+harness.Redis(redisServer.Addr())+`
		}
		respond ok`)
	here, there := harness.StartCaddy(t, config), harness.StartCaddy(t, config)
	client := harness.NewClient(t, "")
	refused := 0
	patient.Until(t, "a ban", func() bool {
		a := here.Get(client, "/", "User", "noisy")
		if a.Status == http.StatusOK {
			return false
		}
		refused++
		wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
		if a.Status != http.StatusTooManyRequests || err != nil {
			t.Fatalf("status %d, Retry-After %q", a.Status, a.Header.Get("Retry-After"))
		}
		if wait > 60 && (refused != 10 || wait != 3600) {
			t.Fatalf("banned for %ds at refusal %d, want 3600 at 10", wait, refused)
		}
		return wait > 60
	})
	status := func(s *harness.Server, user string) int { return s.Get(client, "/", "User", user).Status }
	if a := there.Get(client, "/", "User", "noisy"); a.Status != http.StatusTooManyRequests || len(a.Header.Get("Retry-After")) != 4 {
		t.Errorf("elsewhere: %d, Retry-After %q", a.Status, a.Header.Get("Retry-After"))
	}
	if got := status(there, "quiet"); got != http.StatusOK {
		t.Errorf("somebody else: %d", got)
	}

	operator, err := redisstore.New(redisstore.Options{Address: redisServer.Addr(), Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = operator.Close() })
	bucket, err := algorithms.Get("token_bucket")
	if err != nil {
		t.Fatal(err)
	}
	rule, err := store.NewRule("clients", bucket, algorithms.Limit{Events: 5, Window: time.Second}, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := operator.Unban(ctx, rule, "noisy"); err != nil {
		t.Fatal(err)
	}
	if a := here.Get(client, "/", "User", "noisy"); a.Status != http.StatusOK && a.Header.Get("Retry-After") != "1" {
		t.Errorf("unbanned: %d, Retry-After %q", a.Status, a.Header.Get("Retry-After"))
	}
	if err := operator.Set(ctx, rule, "quiet", store.Override{Kind: store.KindBanned, For: time.Hour}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*harness.Server{here, there} {
		if got := status(s, "quiet"); got != http.StatusTooManyRequests {
			t.Errorf("banned by hand: %d", got)
		}
	}
	if err := operator.Set(ctx, rule, "noisy", store.Override{Kind: store.KindExempt}); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		if a := there.Get(client, "/", "User", "noisy"); a.Status != http.StatusOK || a.Header.Get("RateLimit") != "" {
			t.Fatalf("exempt: %d %v", a.Status, a.Header)
		}
	}
	here.Sound(t)
	there.Sound(t)
}
