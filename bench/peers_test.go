package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
)

// server starts a Redis for a test.
func server(t *testing.T) *rig.Redis {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("REQUIRE_REDIS") == "1" {
			t.Fatal("no redis-server on PATH, and REQUIRE_REDIS=1")
		}
		fmt.Fprintf(os.Stderr, "\nWARNING: no redis-server on PATH, %s is SKIPPED\n\n", t.Name())
		t.Skip("no redis-server on PATH")
	}
	r, err := rig.StartRedis()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestPeersCount: each peer admits what it should and refuses the rest, with one limit per
// request and with three.
func TestPeersCount(t *testing.T) {
	r := server(t)
	withCache := ours(denyCacheName, "token_bucket", 0)
	for _, p := range slices.Concat(peers(), everyAlgorithm(), []peer{withCache}) {
		for _, zones := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/zones=%d", p.name, zones), func(t *testing.T) {
				if err := check(t.Context(), r, p, zones); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestCheckCatchesMiscounts: a peer that admits everything is not measured.
func TestCheckCatchesMiscounts(t *testing.T) {
	r := server(t)
	careless := ping()
	careless.floor = false
	if err := check(t.Context(), r, careless, 1); err == nil {
		t.Error("a limiter that refuses nobody passed")
	}
}
