package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"
	"time"

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

var matchAll = regexp.MustCompile("")

// TestHistogram: a quantile is within a percent of the truth.
func TestHistogram(t *testing.T) {
	var h histogram
	for i := 1; i <= 100_000; i++ {
		h.add(time.Duration(i) * 100 * time.Nanosecond)
	}
	for _, part := range []float64{0.001, 0.5, 0.9, 0.99, 1} {
		want := part * 1e7
		if got := float64(h.quantile(part)); math.Abs(got-want) > want/100 {
			t.Errorf("quantile %v is %v ns, want %v", part, got, want)
		}
	}
}

// TestRatio: a round in which the machine was slow does not change a ratio.
func TestRatio(t *testing.T) {
	round := func(perSecond float64) figures { return figures{perSecond: perSecond} }
	r := &results{rounds: map[cell][]figures{
		{"w", "a", 1}: {round(300), round(30), round(290)},
		{"w", "b", 1}: {round(100), round(10), round(100)},
	}}
	if got, ok := r.ratio("w", "a", "b", 1, perSecond); !ok || got != 3 {
		t.Errorf("ratio %v, %v", got, ok)
	}
	if _, ok := r.ratio("w", "a", "nobody", 1, perSecond); ok {
		t.Error("a ratio to nobody")
	}
}

// TestClaims: a claim names peers that exist.
func TestClaims(t *testing.T) {
	all := &results{rounds: map[cell][]figures{}}
	same := figures{perSecond: 1, p50: 1, p99: 1, redisCPU: 1, clientCPU: 1, allocs: 1}
	for _, w := range workloads(matchAll, []int{1, 16, 64, 256}, 1) {
		for _, p := range w.peers {
			for _, goroutines := range w.goroutines {
				all.rounds[cell{w.name, p.name, goroutines}] = []figures{same}
			}
		}
	}
	for _, c := range claims() {
		if got, ok := c.measured(all); !ok || got != 1 && got != 1e9 {
			t.Errorf("%s: %v, %v", c.text, got, ok)
		}
	}
}
