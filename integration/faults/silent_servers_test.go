//go:build deep

package faults_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

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
	text, err := s.Admin("GET", "/rate_limit/stores", "", "")
	if err != nil {
		s.T.Fatal(err)
	}
	var stores []struct {
		Silent []struct{ Address, Error string }
	}
	if err := json.Unmarshal([]byte(text), &stores); err != nil {
		s.T.Fatal(err)
	}
	for _, one := range stores[0].Silent {
		api = append(api, one.Address)
	}
	return api
}

// silent returns which servers are silent, as the admin API, two commands and the metrics tell it. TestSilence in package topology
// reads the log.
func silent(s *harness.Server) string {
	s.T.Helper()
	var command, doctor []string
	api := silentByAPI(s)
	output, err := s.RateLimit("stores")
	if err != nil {
		s.T.Fatal(err, output)
	}
	for line := range strings.Lines(output) {
		if before, _, found := strings.Cut(line, " is silent: "); found {
			command = append(command, before[strings.LastIndexByte(before, ' ')+1:])
		}
	}
	_, _, findings := s.Doctor("--json")
	for _, f := range findings {
		if f.Check == "silent" {
			doctor = append(doctor, strings.Fields(f.Found)[0])
		}
	}
	text, err := s.Admin("GET", "/metrics", "", "")
	if err != nil {
		s.T.Fatal(err)
	}
	metric := 0.0
	for name, value := range harness.Nonzero(s.T, text) {
		if strings.HasPrefix(name, "store_silent_servers{") {
			metric = value
		}
	}
	return fmt.Sprint(api, command, doctor, metric)
}

// untilSilent waits until exactly these servers are silent, by every report. It waits for the admin API
// first, because some of the ways are commands, and a process takes far longer to ask than a request.
func untilSilent(s *harness.Server, servers ...*redistest.Server) {
	s.T.Helper()
	addresses := []string{}
	for _, one := range servers {
		addresses = append(addresses, one.Addr())
	}
	slices.Sort(addresses)
	patient.UntilEqual(s.T, "the servers that the admin API tells to be silent", func() string { return fmt.Sprint(silentByAPI(s)) }, fmt.Sprint(addresses))
	patient.UntilEqual(s.T, "the servers that are told to be silent", func() string { return silent(s) }, fmt.Sprint(addresses, addresses, addresses, len(addresses)))
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
