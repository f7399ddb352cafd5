package integration_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// startWatched starts a Caddy that counts in servers with these options of the store.
func startWatched(t *testing.T, options string) *server {
	return startCaddy(t, caddyfile("", "rate_limit {\nstore redis {\n"+options+"\n}\non_store_error deny\nzone z {\nrate 1000000/1h\nkey {query.k}\n}\n}\nrespond ok"))
}

// decidesAll sends requests of several keys, and fails the test if one is not decided.
func (s *server) decidesAll() {
	s.t.Helper()
	client := newClient(s.t, "")
	for k := range 20 {
		if a := s.get(client, fmt.Sprintf("/?k=%d", k)); a.status != http.StatusOK {
			s.t.Fatalf("status %d: %s", a.status, a.body)
		}
	}
}

// silent returns which servers are silent, by each way in which that is told.
func (s *server) silent() string {
	s.t.Helper()
	text, err := s.admin("GET", "/rate_limit/stores", "", "")
	if err != nil {
		s.t.Fatal(err)
	}
	var stores []struct {
		Silent []struct{ Address, Error string }
	}
	if err := json.Unmarshal([]byte(text), &stores); err != nil {
		s.t.Fatal(err)
	}
	var api, command, doctor, log []string
	for _, one := range stores[0].Silent {
		api = append(api, one.Address)
	}
	output, err := s.rateLimit("stores")
	if err != nil {
		s.t.Fatal(err, output)
	}
	for line := range strings.Lines(output) {
		if before, _, found := strings.Cut(line, " is silent: "); found {
			command = append(command, before[strings.LastIndexByte(before, ' ')+1:])
		}
	}
	_, _, findings := s.doctor("--json")
	for _, f := range findings {
		if f.Check == "silent" {
			doctor = append(doctor, strings.Fields(f.Found)[0])
		}
	}
	for _, l := range s.linesOf(ourLogger) {
		var of struct{ Address string }
		if err := json.Unmarshal([]byte(l.text), &of); err != nil {
			s.t.Fatal(err)
		}
		switch {
		case strings.HasPrefix(l.Message, "a server of the rate limit store is silent"):
			log = append(log, of.Address)
		case strings.HasPrefix(l.Message, "a server of the rate limit store"):
			if log = slices.DeleteFunc(log, func(a string) bool { return a == of.Address }); l.Level != "info" {
				s.t.Error(l.text)
			}
		}
	}
	slices.Sort(log)
	text, err = s.admin("GET", "/metrics", "", "")
	if err != nil {
		s.t.Fatal(err)
	}
	metric := 0.0
	for name, value := range nonzero(s.t, text) {
		if strings.HasPrefix(name, "store_silent_servers{") {
			metric = value
		}
	}
	return fmt.Sprint(api, command, doctor, log, metric)
}

// untilSilent waits until exactly these servers are told to be silent, in every way.
func (s *server) untilSilent(servers ...*redistest.Server) {
	s.t.Helper()
	addresses := []string{}
	for _, one := range servers {
		addresses = append(addresses, one.Addr())
	}
	slices.Sort(addresses)
	patient.UntilEqual(s.t, "the servers that are told to be silent", s.silent, fmt.Sprint(addresses, addresses, addresses, addresses, len(addresses)))
}

// TestSilentSentinels: a Sentinel that is dead, one that hangs and one that does not know the master are told, although
// all requests are decided, and are told to be back.
func TestSilentSentinels(t *testing.T) {
	patient.BesideOthers(t)
	g := redistest.StartSentinel(t, nil, nil)
	all := g.Sentinels()
	s := startWatched(t, "mode sentinel\nmaster_name "+redistest.MasterName+"\naddress "+strings.Join(g.Addrs(), " ")+"\ntimeout 10s")
	s.untilSilent()
	s.decidesAll()

	all[0].Kill()
	s.untilSilent(all[0])
	all[1].Freeze()
	s.untilSilent(all[0], all[1])
	if err := all[2].Admin().Do(t.Context(), "sentinel", "remove", redistest.MasterName).Err(); err != nil {
		t.Fatal(err)
	}
	s.untilSilent(all...)
	s.decidesAll()
	if _, _, findings := s.doctor("--json"); !slices.ContainsFunc(findings, func(f finding) bool {
		return f.Level == "warn" && strings.Contains(f.Found, `watches no master "limits"`) && f.Fix != ""
	}) {
		t.Errorf("%+v", findings)
	}

	all[0].Restart()
	s.untilSilent(all[1], all[2])
	all[1].Thaw()
	s.untilSilent(all[2])
	host, port, _ := strings.Cut(g.Servers()[0].Addr(), ":")
	if err := all[2].Admin().Do(t.Context(), "sentinel", "monitor", redistest.MasterName, host, port, "2").Err(); err != nil {
		t.Fatal(err)
	}
	s.untilSilent()
	s.decidesAll()
}

// TestSilentNode: a node of a Cluster that is dead is told, and that it is back.
func TestSilentNode(t *testing.T) {
	patient.BesideOthers(t)
	c := redistest.StartCluster(t, 3, 0)
	s := startWatched(t, "mode cluster\naddress "+c.Addrs()[0]+"\ntimeout 1s")
	patient.Until(t, "the Cluster to answer", func() bool { return s.get(http.DefaultClient, "/").status == http.StatusOK })
	dead := c.Nodes()[1]
	dead.Kill()
	client := newClient(t, "")
	for k := 0; k < 20 && s.get(client, fmt.Sprintf("/?k=%d", k)).status == http.StatusOK; k++ { // one that fails has all nodes asked at once
	}
	s.untilSilent(dead)
	dead.Restart()
	s.untilSilent()
}
