package redisstore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestProbeFailsAsTake: a Redis that answers and cannot charge is no Redis that works, except that
// a full one still decides what needs no room.
func TestProbeFailsAsTake(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t,
		redistest.WithUser("elsewhere", "p", "~other:*", "+@all"),
		redistest.WithUser("reader", "p", "~*", "+@all", "-@write"),
		redistest.WithUser("least", "p", leastACL(t)...),
		redistest.WithUser("older", "p", append(leastACL(t), "-setrange")...),
		redistest.WithUser("unasked", "p", "~*", "+@all", "-info"),
	)
	full := redistest.Start(t, redistest.WithArgs("--maxmemory-policy", "noeviction"))
	fill(full)
	replica := redistest.Start(t)
	if err := replica.Admin().ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		address, user string
		want          string // kind of the failure
		names         string // what its text names
	}{
		"works":        {server.Addr(), "", "", ""},
		"least rights": {server.Addr(), "least", "", ""},
		"no SETRANGE":  {server.Addr(), "older", store.FailureAuth, "setrange"},
		"no INFO":      {server.Addr(), "unasked", "", ""},
		"other keys":   {server.Addr(), "elsewhere", store.FailureAuth, ""},
		"no writing":   {server.Addr(), "reader", store.FailureAuth, "set"},
		"replica":      {replica.Addr(), "", store.FailureReadonly, ""},
		"full":         {full.Addr(), "", "", ""},
	} {
		options := redisstore.Options{Address: c.address}
		if c.user != "" {
			options.Username, options.Password = c.user, "p"
		}
		s, err := redisstore.New(options)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Probe(t.Context())
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || store.Failure(err) != c.want):
			t.Errorf("%s: %v, want an error of kind %s", name, err, c.want)
		case c.want != "" && !strings.Contains(strings.ToLower(err.Error()), c.names):
			t.Errorf("%s: %v does not name %s", name, err, c.names)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestProbeClosesTheBreaker: when a probe has passed, the next request is decided, although the breaker was open before.
func TestProbeClosesTheBreaker(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.Start(t, redistest.Start(t).Addr())
	s := open(t, redisstore.Options{Address: proxy.Addr()})
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 1_000_000, Window: time.Hour})
	for range 3 {
		proxy.Inject(func(string) faultproxy.Fault { return faultproxy.CutBefore })
		patient.Until(t, "the breaker to open", func() bool { return attempt(s, rule) != nil && s.Breaker() == store.BreakerOpen })
		if _, err := s.Probe(t.Context()); err == nil {
			t.Error("a probe passes, although all connections break")
		}
		proxy.Inject(func(string) faultproxy.Fault { return faultproxy.None })
		_, err := s.Probe(t.Context())
		if state := s.Breaker(); err != nil || state != store.BreakerClosed {
			t.Errorf("a probe says %v, and the breaker is %s", err, state)
		}
		if err := attempt(s, rule); err != nil {
			t.Errorf("a request after the probe: %v", err)
		}
	}
}

// TestProbeOfACluster: what is wrong with one node only is told, whichever node that is.
func TestProbeOfACluster(t *testing.T) {
	patient.BesideOthers(t)
	c := redistest.StartCluster(t, 3, 0, redistest.WithUser("limiter", "p", append(append(leastACL(t), clusterACL(t)...), "+info")...))
	s := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs(), Username: "limiter", Password: "p"})
	expect := func(which, evicts string, missing ...string) {
		t.Helper()
		switch found, err := s.Probe(t.Context()); {
		case err != nil:
			t.Errorf("%s: %v", which, err)
		case found.Rights == nil || !slices.Equal(found.Rights.Missing, missing) || found.Evicts != evicts:
			t.Errorf("%s: rights %v, evicts %q", which, found.Rights, found.Evicts)
		}
	}
	set := func(node *redistest.Server, policy string, rules ...any) {
		t.Helper()
		node.Configure("maxmemory-policy", policy)
		if err := node.Admin().Do(t.Context(), append([]any{"acl", "setuser", "limiter"}, rules...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	expect("all is well", "")
	for _, node := range c.Nodes() {
		set(node, "allkeys-lru", "-lrem", "-zscore") // the charge of the probe needs neither
		expect(node.Addr(), "allkeys-lru", "lrem", "zscore")
		set(node, "noeviction", "+lrem", "+zscore")
	}
	expect("all is well again", "")
}
