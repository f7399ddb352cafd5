//go:build deep

package pool_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/backend"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/doctor"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestWhichServer: a server that is another one than the config says is found by a probe, the log, doctor and
// requests, and each says the same fix. The config that follows it works.
func TestWhichServer(t *testing.T) {
	t.Parallel()
	right := slices.Clip(documentedRights(t))
	one := redistest.Start(t, redistest.WithUser("limiter", "p", right...), redistest.WithArgs("--rename-command", "evalsha", ""))
	plain := redistest.Start(t, redistest.WithUser("limiter", "p", right...), redistest.WithUser("noselect", "p", append(right, "-select")...),
		redistest.WithUser("noset", "p", append(right, "-set")...))
	replica := redistest.Start(t)
	if err := replica.Admin().ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	cluster := redistest.StartCluster(t, 3, 0, redistest.WithUser("limiter", "p", right...))
	under := redistest.StartSentinel(t, nil, []redistest.Option{
		redistest.WithUser("finder", "p", "+@all"), redistest.WithUser("lost", "p", "-@all", "+ping"),
	})
	node, sentinel := cluster.Addrs()[:1], under.Addrs()[:1]
	asCluster := &backend.RedisStore{Mode: "cluster", Address: node}
	asSentinel := &backend.RedisStore{Mode: "sentinel", MasterName: redistest.MasterName, Address: sentinel}
	asOne := &backend.RedisStore{Address: []string{plain.Addr()}}
	for name, c := range map[string]struct {
		config *backend.RedisStore
		check  string // of doctor
		fix    string // what all say
		fixed  *backend.RedisStore
	}{
		"a node of a Cluster as one Redis":            {&backend.RedisStore{Address: node}, "server", "write mode cluster", asCluster},
		"a node of a Cluster as one Redis, with a db": {&backend.RedisStore{Address: node, DB: 3}, "server", "write mode cluster", asCluster},
		"a node of a Cluster as a Sentinel":           {&backend.RedisStore{Mode: "sentinel", MasterName: "m", Address: node}, "server", "whose port is mostly 26379", asSentinel},
		"one Redis as a Cluster":                      {&backend.RedisStore{Mode: "cluster", Address: asOne.Address}, "server", "leave mode cluster out", asOne},
		"one Redis as a Sentinel":                     {&backend.RedisStore{Mode: "sentinel", MasterName: "m", Address: asOne.Address}, "server", "leave mode sentinel and master_name out", asOne},
		"a Sentinel as one Redis":                     {&backend.RedisStore{Address: sentinel}, "server", "write mode sentinel and master_name", asSentinel},
		"a Sentinel as one Redis, with a db":          {&backend.RedisStore{Address: sentinel, DB: 3}, "server", "write mode sentinel and master_name", asSentinel},
		"a Sentinel as a Cluster":                     {&backend.RedisStore{Mode: "cluster", Address: sentinel}, "server", "write mode sentinel and master_name", asSentinel},
		"a master that the Sentinels do not know":     {&backend.RedisStore{Mode: "sentinel", MasterName: "m", Address: sentinel}, "server", "set master_name", asSentinel},
		"a wrong password of a Sentinel":              {&backend.RedisStore{Mode: "sentinel", MasterName: redistest.MasterName, Address: sentinel, SentinelUsername: "finder", SentinelPassword: "x"}, "login", "correct sentinel_username", asSentinel},
		"no rights at a Sentinel":                     {&backend.RedisStore{Mode: "sentinel", MasterName: redistest.MasterName, Address: sentinel, SentinelUsername: "lost", SentinelPassword: "p"}, "rights", "give that user the rights", asSentinel},
		"a replica":                                   {&backend.RedisStore{Address: []string{replica.Addr()}}, "replica", "", asOne},
		"no EVALSHA":                                  {&backend.RedisStore{Address: []string{one.Addr()}}, "server", "use a server that has this command", asOne},
		"no such db":                                  {&backend.RedisStore{Address: asOne.Address, DB: 16}, "server", "set db to a number below", &backend.RedisStore{Address: asOne.Address, DB: 15}},
		"no right to select a db":                     {&backend.RedisStore{Address: asOne.Address, DB: 3, Username: "noselect", Password: "p"}, "rights", "+select", asOne},
		"no right to charge":                          {&backend.RedisStore{Address: asOne.Address, Username: "noset", Password: "p"}, "rights", "give the user the rights", asOne},
		"no right to find the nodes of a Cluster":     {&backend.RedisStore{Mode: "cluster", Address: node, Username: "limiter", Password: "p"}, "rights", "+cluster", asCluster},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			saysEverywhere(t, c.config, c.check, c.fix)
			if err := probe(t, acquired(t, c.fixed)); err != nil {
				t.Errorf("after the fix: %v", err)
			}
		})
	}
}

// saysEverywhere expects what is said of a store that is set up wrongly.
func saysEverywhere(t *testing.T, config *backend.RedisStore, check, fix string) {
	t.Helper()
	ref := acquired(t, config)
	expect := func(who, said string) {
		t.Helper()
		if !strings.Contains(said, fix) {
			t.Errorf("%s does not say %q: %s", who, fix, said)
		}
	}
	if check != "replica" { // a failover may make it a master while Caddy waits
		err := probe(t, ref)
		if err == nil {
			t.Fatal("the probe is content")
		}
		expect("the probe", err.Error())
	}
	expect("the log", logged(t, ref))
	examined := ref.Store.Store.(store.Observed).Examine(t.Context())
	var failed []string
	for _, f := range doctor.Examine(&doctor.Facts{Stores: []doctor.Store{{Examined: &examined}}}).Findings {
		if f.Level == "fail" {
			failed = append(failed, f.Check)
			expect("doctor", f.Fix.String())
		}
	}
	if strings.Join(failed, " ") != check {
		t.Errorf("doctor fails %q, want %q; %+v", failed, check, examined)
	}
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 1000, Window: 1e12})
	for i := range 100 { // a node of a Cluster decides some keys
		err := ref.Store.Store.Take(t.Context(), []store.Check{{Rule: rule, Key: strconv.Itoa(i), Cost: 1}}, make([]algorithms.Decision, 1))
		if err != nil {
			expect("a request", err.Error())
			return
		}
	}
	t.Error("all requests are decided")
}

// acquired opens a store.
func acquired(t *testing.T, config *backend.RedisStore) *pool.Ref {
	t.Helper()
	opened := *config
	opened.Timeout = caddy.Duration(20 * time.Second)
	if err := opened.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	ref, err := pool.Acquire(&opened)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ref.Release() })
	return ref
}

func documentedRights(t *testing.T) []string {
	return redistest.DocumentedRights(t, "../../docs/redis.md")
}
