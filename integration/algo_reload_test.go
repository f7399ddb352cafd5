package integration_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestReloadKeepsSlots: a request that outlives its config keeps its slots under the next config,
// for longer than a lease, and gives them back when it ends. For another instance, this holds even
// if the next config has no limits at all.
func TestReloadKeepsSlots(t *testing.T) {
	t.Parallel()
	upstream := startBackend(t, holding)
	config := func(events, store string) string { return caddyfile("", slotZones(events, store)) }
	eachFleet(t, func(store string) string { return config("2", store) }, func(t *testing.T, f fleet) {
		s, client, gate := f.first, newClient(t, ""), t.Name()
		held := s.begin("/both", "X-Gate", gate)
		s.awaitLeft(client, "returned", 1)

		// The limit is raised by one.
		s.mustLoad(config("3", f.store))
		s.getUnder(client, 3, "peek/renewed")
		if renewed, returned := s.left(client, "renewed"), s.left(client, "returned"); renewed != 2 || returned != 2 {
			t.Errorf("after the reload %d and %d left, want 2", renewed, returned)
		}
		watched, left := s, int64(2)
		if f.last != s {
			s.mustLoad(caddyfile("", "respond ok"))
			s.getUnder(client, -1, "peek/renewed")
			watched, left = f.last, 1
		}
		stayTaken(t, client, left, watched)

		upstream.open(gate)
		if a := held.result(); a.status != http.StatusOK {
			t.Errorf("the request from before: status %d", a.status)
		}
		watched.awaitLeft(client, "returned", left+1)
		watched.awaitLeft(client, "renewed", left+1)
	}, upstream.variable())
}

// TestReloadForgetsSlots: in memory, a zone that no config names is forgotten. A request that
// still holds one of its slots ends without harm to a later zone of the same name.
func TestReloadForgetsSlots(t *testing.T) {
	t.Parallel()
	upstream := startBackend(t, holding)
	config := caddyfile("", slotZones("2", memory))
	s, client := startCaddy(t, config, upstream.variable()), newClient(t, "")
	before := s.begin("/both", "X-Gate", "before")
	s.awaitLeft(client, "returned", 1)
	s.mustLoad(caddyfile("", "respond ok"))
	if stacks, err := s.stacks(); err != nil || !strings.Contains(stacks, stopsServers) {
		t.Errorf("the server that waits for a request is not found: %v\n%s", err, stacks)
	}
	s.getUnder(client, -1, "peek/renewed")
	s.mustLoad(config)
	s.getUnder(client, 2, "peek/renewed")

	after := s.begin("/both", "X-Gate", "after")
	s.awaitLeft(client, "returned", 1)
	upstream.open("before")
	if a := before.result(); a.status != http.StatusOK {
		t.Errorf("the request from before: status %d", a.status)
	}
	stayTaken(t, client, 1, s)
	upstream.open("after")
	if a := after.result(); a.status != http.StatusOK {
		t.Errorf("the request after: status %d", a.status)
	}
	s.awaitLeft(client, "returned", 2)
}
