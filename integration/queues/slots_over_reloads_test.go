package queues_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestReloadKeepsSlots: a request that outlives its config keeps its slots under the next config,
// for longer than a lease, and gives them back when it ends. For another instance, this holds even
// if the next config has no limits at all.
func TestReloadKeepsSlots(t *testing.T) {
	t.Parallel()
	upstream := harness.StartBackend(t, harness.Holding)
	config := func(events, store string) string { return harness.Caddyfile("", slotZones(events, store)) }
	harness.EachFleet(t, func(store string) string { return config("2", store) }, func(t *testing.T, f harness.Fleet) {
		s, client, gate := f.First, harness.NewClient(t, ""), t.Name()
		held := s.Begin("/both", "X-Gate", gate)
		s.AwaitLeft(client, "returned", 1)

		// The limit is raised by one.
		s.MustLoad(config("3", f.Store))
		s.GetUnder(client, 3, "peek/renewed")
		if renewed, returned := s.Left(client, "renewed"), s.Left(client, "returned"); renewed != 2 || returned != 2 {
			t.Errorf("after the reload %d and %d left, want 2", renewed, returned)
		}
		watched, left := s, int64(2)
		if f.Last != s {
			s.MustLoad(harness.Caddyfile("", "respond ok"))
			s.GetUnder(client, -1, "peek/renewed")
			watched, left = f.Last, 1
		}
		stayTaken(t, client, left, watched)

		upstream.Open(gate)
		if a := held.Result(); a.Status != http.StatusOK {
			t.Errorf("the request from before: status %d", a.Status)
		}
		watched.AwaitLeft(client, "returned", left+1)
		watched.AwaitLeft(client, "renewed", left+1)
	}, upstream.Variable())
}

// TestReloadForgetsSlots: in memory, a zone that no config names is forgotten. A request that
// still holds one of its slots ends without harm to a later zone of the same name.
func TestReloadForgetsSlots(t *testing.T) {
	t.Parallel()
	upstream := harness.StartBackend(t, harness.Holding)
	config := harness.Caddyfile("", slotZones("2", harness.Memory))
	s, client := harness.StartCaddy(t, config, upstream.Variable()), harness.NewClient(t, "")
	before := s.Begin("/both", "X-Gate", "before")
	s.AwaitLeft(client, "returned", 1)
	s.MustLoad(harness.Caddyfile("", "respond ok"))
	if stacks, err := s.Stacks(); err != nil || !strings.Contains(stacks, harness.StopsServers) {
		t.Errorf("the server that waits for a request is not found: %v\n%s", err, stacks)
	}
	s.GetUnder(client, -1, "peek/renewed")
	s.MustLoad(config)
	s.GetUnder(client, 2, "peek/renewed")

	after := s.Begin("/both", "X-Gate", "after")
	s.AwaitLeft(client, "returned", 1)
	upstream.Open("before")
	if a := before.Result(); a.Status != http.StatusOK {
		t.Errorf("the request from before: status %d", a.Status)
	}
	stayTaken(t, client, 1, s)
	upstream.Open("after")
	if a := after.Result(); a.Status != http.StatusOK {
		t.Errorf("the request after: status %d", a.Status)
	}
	s.AwaitLeft(client, "returned", 2)
}
