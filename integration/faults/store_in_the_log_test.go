//go:build deep

// Package faults_test tests what happens while Redis does not work: each fault, under load, with one server, Sentinel and a
// Cluster.
package faults_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

func TestMain(m *testing.M) { harness.Main(m) }

// redisSite is a site with two zones in Redis, with more options of the store.
func redisSite(address, options string) string {
	return harness.Caddyfile("", "rate_limit {\nstore redis {\naddress "+address+"\n"+options+"\n}\n"+
		"zone open {\nrate 100/1m\n}\nzone closed {\nrate 100/1m\non_store_error deny\n}\n}\nrespond ok")
}

// TestWrongPasswordShows: without any request, the log says that Redis does not answer and what
// that means, and then that it does.
func TestWrongPasswordShows(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithPassword("right"))
	s := harness.StartCaddy(t, redisSite(redis.Addr(), "password wrong"))
	s.AwaitLog(`"level":"error"`, "the rate limit store does not answer", "WRONGPASS")
	s.AwaitLog(`"level":"warn"`, "until the rate limit store answers, on_store_error decides: ", "open allow", "closed deny")
	if screen, _ := s.RateLimit("stores"); !strings.Contains(screen, "  no       failing  ") || !strings.Contains(screen, ": WRONGPASS") {
		t.Errorf("the stores do not say what is wrong:\n%s", screen)
	}
	redis.Configure("requirepass", "wrong")
	s.AwaitLog(`"level":"info"`, `"msg":"the rate limit store answers"`, `"version":"`, `"round_trip":`, `"instances":`)
	if n := bytes.Count(s.Log(), []byte("until the rate limit store answers")); n != 1 {
		t.Errorf("%d lines about the consequence, want 1", n)
	}
}

// TestEvictionShows: a Redis that removes keys lets refused clients through again.
func TestEvictionShows(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithArgs("--maxmemory-policy", "allkeys-lru"))
	s := harness.StartCaddy(t, redisSite(redis.Addr(), ""))
	s.AwaitLog(`"level":"warn"`, "set maxmemory-policy noeviction", `"maxmemory_policy":"allkeys-lru"`)
}

// TestMissingTLSShows: errors that only say that the connection has ended name the likely reason.
func TestMissingTLSShows(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithTLS(false))
	harness.StartCaddy(t, redisSite(redis.TLSAddr(), "")).AwaitLog("the rate limit store does not answer", "if it expects TLS, add tls")
	harness.StartCaddy(t, redisSite(redis.Addr(), "tls")).AwaitLog("the rate limit store does not answer", "is this a port for TLS? if not, leave tls out")
}

// startWatched starts a Caddy that counts in servers with these options of the store.
func startWatched(t *testing.T, options string) *harness.Server {
	return harness.StartCaddy(t, harness.Caddyfile("", "rate_limit {\nstore redis {\n"+options+"\n}\non_store_error deny\nzone z {\nrate 1000000/1h\nkey {query.k}\n}\n}\nrespond ok"))
}

// decidesAll sends requests of several keys, and fails the test if one is not decided.
func decidesAll(s *harness.Server) {
	s.T.Helper()
	client := harness.NewClient(s.T, "")
	for k := range 20 {
		if a := s.Get(client, fmt.Sprintf("/?k=%d", k)); a.Status != http.StatusOK {
			s.T.Fatalf("status %d: %s", a.Status, a.Body)
		}
	}
}

// silentByAPI returns which servers are silent, as the admin API tells it.
func silentByAPI(s *harness.Server) (api []string) {
	s.T.Helper()
	var stores []struct{ Silent []struct{ Address string } }
	s.Ask("/rate_limit/stores", &stores)
	for _, one := range stores[0].Silent {
		api = append(api, one.Address)
	}
	return api
}

// silent returns which servers are silent, as the admin API, doctor and the metrics tell it. TestSilence in package topology
// reads the log.
func silent(s *harness.Server) string {
	s.T.Helper()
	var doctor []string
	api := silentByAPI(s)
	_, _, findings := s.Doctor("--json")
	for _, f := range findings {
		if f.Check == "silent" {
			doctor = append(doctor, strings.Fields(f.Found)[0])
		}
	}
	metric := 0.0
	_, samples := s.Scrape()
	for name, value := range samples {
		if strings.HasPrefix(name, "store_silent_servers{") {
			metric = value
		}
	}
	return fmt.Sprint(api, doctor, metric)
}

// untilSilent waits until exactly these servers are silent, by every report. It waits for the admin API
// first, because doctor is a command, and a process takes far longer to ask than a request.
func untilSilent(s *harness.Server, servers ...*redistest.Server) {
	s.T.Helper()
	addresses := []string{}
	for _, one := range servers {
		addresses = append(addresses, one.Addr())
	}
	slices.Sort(addresses)
	patient.UntilEqual(s.T, "the servers that the admin API tells to be silent", func() string { return fmt.Sprint(silentByAPI(s)) }, fmt.Sprint(addresses))
	patient.UntilEqual(s.T, "the servers that are told to be silent", func() string { return silent(s) }, fmt.Sprint(addresses, addresses, len(addresses)))
}

// TestSilentSentinels: a Sentinel that is dead, one that hangs and one that does not know the master are told, although
// all requests are decided, and are reported to be back.
func TestSilentSentinels(t *testing.T) {
	patient.BesideOthers(t)
	g := redistest.StartSentinel(t, nil, nil)
	all := g.Sentinels()
	s := startWatched(t, "mode sentinel\nmaster_name "+redistest.MasterName+"\naddress "+strings.Join(g.Addrs(), " ")+"\ntimeout 10s")
	untilSilent(s)
	decidesAll(s)

	all[0].Kill()
	untilSilent(s, all[0])
	all[1].Freeze()
	untilSilent(s, all[0], all[1])
	if err := all[2].Admin().Do(t.Context(), "sentinel", "remove", redistest.MasterName).Err(); err != nil {
		t.Fatal(err)
	}
	untilSilent(s, all...)
	decidesAll(s)
	if _, _, findings := s.Doctor("--json"); !slices.ContainsFunc(findings, func(f harness.Finding) bool {
		return f.Level == "warn" && strings.Contains(f.Found, `watches no master "limits"`) && f.Fix != ""
	}) {
		t.Errorf("%+v", findings)
	}

	all[0].Restart()
	untilSilent(s, all[1], all[2])
	all[1].Thaw()
	untilSilent(s, all[2])
	host, port, _ := strings.Cut(g.Servers()[0].Addr(), ":")
	if err := all[2].Admin().Do(t.Context(), "sentinel", "monitor", redistest.MasterName, host, port, "2").Err(); err != nil {
		t.Fatal(err)
	}
	untilSilent(s)
	decidesAll(s)
}

// TestFaultsOfSentinel kills the master. Service is normal when there is another one.
func TestFaultsOfSentinel(t *testing.T) {
	patient.BesideOthers(t)
	g := redistest.StartSentinel(t, nil, nil)
	f := startFaultFleet(t, "mode sentinel\n master_name "+redistest.MasterName+"\n address "+strings.Join(g.Addrs(), " "))
	var dead *redistest.Server
	f.sufferAll(t, []fault{{
		name: "sentinel failover", lost: faultLimit,
		begin: func(*testing.T) { dead = g.Master(); dead.Kill() },
		end:   func(*testing.T) time.Time { g.AwaitSwitch(dead); return time.Now() },
	}})
}

// TestFaultsOfCluster moves the slot in use, and kills the node that has it.
func TestFaultsOfCluster(t *testing.T) {
	patient.BesideOthers(t)
	const resharding, failover = "resharding", "cluster failover"
	redisCluster := redistest.StartCluster(t, 3, 1)
	f := startFaultFleet(t, "mode cluster\n address "+strings.Join(redisCluster.Addrs()[:3], " "))
	key := func(name string) string { return "rl:{" + faultKey(name) + "}:deny:fixed_window.4:1h-first_request" }
	var move *redistest.Migration
	f.sufferAll(t, []fault{
		{
			name: resharding, answers: true,
			begin: func(*testing.T) {
				from, to := redisCluster.MasterOf(key(resharding)), redisCluster.Nodes()[0]
				if from == to {
					to = redisCluster.Nodes()[1]
				}
				move = redisCluster.StartMove(redisCluster.SlotOf(key(resharding)), from, to)
			},
			end: func(*testing.T) time.Time { move.Finish(); return time.Now() },
		},
		{
			name: failover, lost: faultLimit,
			begin: func(*testing.T) { redisCluster.MasterOf(key(failover)).Kill() },
			end:   func(*testing.T) time.Time { redisCluster.MasterOf(key(failover)); return time.Now() },
		},
	})
}
