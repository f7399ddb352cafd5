package main

import (
	"fmt"
	"math/rand"
	"strings"
	"time"
)

// The limits of a case that are no number.
const (
	noLimit  = "no limit"
	adaptive = "adaptive"
	parted   = "adaptive, one each" // for quick and for slow requests
)

// testcase is an upstream with more requests than it can answer.
type testcase struct {
	name      string
	servers   []server
	dead      bool    // one more upstream, which does not answer
	perSecond float64 // requests: a quarter of 20 polite keys, and the rest of a hog
	limits    []string
	slow      float64 // the part of the requests that take a second, while the others take 10 ms
	changes   []int   // how many workers the first server has after each equal part of the run
	alone     bool    // the processors are the bottleneck
	long      int     // how many times as long it runs; 0 is 1
}

// server is a process of an upstream.
type server struct {
	role    string
	workers int
	took    time.Duration
}

func limits(static ...int) []string {
	all := []string{noLimit}
	for _, n := range static {
		all = append(all, fmt.Sprint(n))
	}
	return append(all, adaptive)
}

// cases are the rows of the table. Each upstream can answer about 100 requests in a second, and gets twice as many: half
// of what it can do from polite keys. So a small machine has processors left for Caddy and the clients.
func cases() []*testcase {
	const took = 40 * time.Millisecond
	pool := server{"pool", 4, took}
	return []*testcase{
		{name: "4 workers", servers: []server{pool}, perSecond: 200, limits: limits(2, 4, 8)},
		{name: "4 workers, then 2, then 8", servers: []server{pool}, perSecond: 250, limits: limits(4, 8, 16), changes: []int{4, 2, 8}, long: 2},
		{name: "one processor", servers: []server{{"processor", 1, 8 * time.Millisecond}}, perSecond: 250, limits: limits(1, 4), alone: true},
		{name: "database of 8 connections", servers: []server{{"connections", 8, 2 * took}, {"database", 8, 2 * took}}, perSecond: 250, limits: limits(4, 7, 12)},
		{
			name: "4 quick workers, 2 slow ones", dead: true, perSecond: 250, limits: limits(4, 8, 16),
			servers: []server{pool, {"pool", 2, 2 * took}},
		},
		{name: "10 ms with 1 s", servers: []server{{"pool", 32, took}}, perSecond: 300, limits: append(limits(32, 64), parted), slow: 0.2, long: 2},
	}
}

// proxyTo are the lines of a Caddyfile that proxy to the upstreams.
func (c *testcase) proxyTo(addresses []string) string {
	return "reverse_proxy " + strings.Join(addresses, " ") + ` {
		lb_policy least_conn
		lb_retries 2
		fail_duration 5s
		transport http {
			keepalive_idle_conns_per_host 1000
		}
	}`
}

// site are the lines of a Caddyfile with a limit.
func (c *testcase) site(limit string, addresses []string) string {
	adapt := func(name, options string) string {
		return "adaptive_concurrency " + name + " {\n\t\t" + options + "\n\t}\n\t"
	}
	proxy := c.proxyTo(addresses)
	switch limit {
	case noLimit:
		return proxy
	case adaptive:
		return adapt("app", "key {http.request.header.Key}") + proxy
	case parted:
		return "handle /slow {\n\t" + adapt("slow", "key {http.request.header.Key}") + proxy + "\n\t}\n\thandle {\n\t" + adapt("quick", "key {http.request.header.Key}") + proxy + "\n\t}"
	}
	return adapt("app", "key all\n\t\tmin "+limit+"\n\t\tmax "+limit) + proxy
}

// path is that of the next request.
func (c *testcase) path(r *rand.Rand) string {
	switch {
	case c.slow == 0:
		return ""
	case r.Float64() < c.slow:
		return "slow"
	}
	return "quick"
}
