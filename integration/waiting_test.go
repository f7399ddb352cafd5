package integration_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// TestSlots: no more requests of a fleet are with the upstream than there are slots. One that waits gets the slot of one that
// ends or whose client leaves, and one whose client leaves while it waits takes none. A reload takes no slot away.
func TestSlots(t *testing.T) {
	b := harness.StartBackend(t, harness.Holding)
	store := harness.SharedStore(t)
	config := harness.Caddyfile("", harness.Limited("slots", "algorithm concurrency\nevents 3\nlease 10m", store, "reverse_proxy {$UPSTREAM}")+
		harness.Limited("waits", "algorithm concurrency\nevents 1\nlease 10m\nmax_wait 10m", store, "reverse_proxy {$UPSTREAM}"))
	fleet, client := harness.Three(t, config, b.Variable()), harness.NewClient(t, "")
	var held []*harness.Pending
	for i := range 3 {
		held = append(held, fleet[i].Begin("/slots", "X-Gate", "end"))
	}
	b.AwaitInside(t, 3)
	for _, s := range fleet {
		if a := s.Get(client, "/slots"); a.Status != http.StatusTooManyRequests || harness.RetryAfter(t, a) != time.Second {
			t.Errorf("status %d, %v", a.Status, a.Header)
		}
	}
	fleet[0].MustLoad(strings.ReplaceAll(config, "{$UPSTREAM}", b.Address) + "\n# changed\n")
	if left := fleet[0].Left(client, "slots"); left != 0 {
		t.Errorf("%d left after a reload", left)
	}
	held[1].Leave()
	fleet[2].AwaitLeft(client, "slots", 1)
	b.Open("end")
	fleet[1].AwaitLeft(client, "slots", 3)

	first := fleet[0].Begin("/waits", "X-Gate", "first")
	b.AwaitInside(t, 1)
	leaver := fleet[1].Begin("/waits", "X-Gate", "next")
	fleet[1].AwaitWaiting(1)
	leaver.Leave()
	fleet[1].AwaitWaiting(0)
	next := fleet[1].Begin("/waits", "X-Gate", "next")
	fleet[1].AwaitWaiting(1)
	b.Open("first")
	b.Open("next")
	for _, p := range []*harness.Pending{first, next} {
		if a := p.Result(); a.Status != http.StatusOK {
			t.Errorf("status %d", a.Status)
		}
	}
	fleet[2].AwaitLeft(client, "waits", 1)
	if _, most := b.Now(); most != 3 {
		t.Errorf("%d were with the upstream at once, want 3", most)
	}
}

// TestQueue: of a bucket of three that leaks one per hour, one request passes, two wait, and the next is refused, until a client
// leaves the queue.
func TestQueue(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			// A refusal is remembered for a while, even if another request gives a turn back.
			store = strings.Replace(store, "store redis {", "store redis {\ndeny_cache off", 1)
			fleet := harness.Three(t, harness.Caddyfile("", harness.Limited("queue", "algorithm leaky_bucket 1/1h\nmode queue\nburst 3", store, "respond ok")))
			if name == "memory" {
				fleet = fleet[:1]
			}
			s, other, client := fleet[0], fleet[len(fleet)-1], harness.NewClient(t, "")
			if a := s.Get(client, "/queue"); a.Status != http.StatusOK {
				t.Fatalf("status %d", a.Status)
			}
			s.Begin("/queue")
			s.AwaitLeft(client, "queue", 1)
			last := other.Begin("/queue")
			s.AwaitLeft(client, "queue", 0)
			if a := s.Get(client, "/queue"); a.Status != http.StatusTooManyRequests {
				t.Errorf("status %d with a full queue", a.Status)
			}
			last.Leave()
			s.AwaitLeft(client, "queue", 1)
		})
	}
}

// TestAdaptive: while the upstream has as many requests as it may, others wait for a slot, until one is free or a reload allows more.
// One that gets none in time is answered 503, which costs nothing in a zone that does not charge it. A connection that is upgraded
// holds no slot.
func TestAdaptive(t *testing.T) {
	b := harness.StartBackend(t, harness.AnswerAsAsked)
	site := func(most int, wait string) string {
		return harness.Caddyfile("", fmt.Sprintf(`route {
			rate_limit {
				zone served {
					rate 10/1h
					charge {
						status 2xx
					}
				}
			}
			adaptive_concurrency {
				min %d
				max %[1]d
				max_wait %s
			}
			reverse_proxy %s
		}`, most, wait, b.Address))
	}
	s := harness.One(t, site(1, "10m"))
	waiting := func() int {
		var limits []struct{ Waiting int }
		s.Ask("/rate_limit/adaptive", &limits)
		return limits[0].Waiting
	}
	first := s.Begin("/", "X-Gate", "open")
	b.AwaitInside(t, 1)
	second := s.Begin("/", "X-Gate", "open")
	patient.UntilEqual(t, "requests that wait", waiting, 1)
	s.MustLoad(site(2, "10m"))
	b.AwaitInside(t, 2)
	third := s.Begin("/", "X-Gate", "open")
	patient.UntilEqual(t, "requests that wait after a reload", waiting, 1)
	b.Open("open")
	for _, p := range []*harness.Pending{first, second, third} {
		if a := p.Result(); a.Status != http.StatusOK {
			t.Errorf("status %d", a.Status)
		}
	}
	s.MustLoad(site(1, "10ms"))
	if _, status := s.Upgrade(t); status != http.StatusSwitchingProtocols {
		t.Errorf("upgrade: status %d", status)
	}
	s.Begin("/", "X-Gate", "held")
	b.AwaitInside(t, 2)
	if a := s.Get(harness.NewClient(t, ""), "/"); a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, %v", a.Status, a.Header)
	}
	s.AwaitUsed("three answers, and one that is booked", "served", "", 4)
}

// TestOnStoreError: while Redis does not answer, the zone refuses, passes or goes on with its share, as it says, and counts
// again when Redis is back.
func TestOnStoreError(t *testing.T) {
	proxy := faultproxy.Start(t, harness.SharedRedis(t).Addr())
	store, site := harness.SharedStore(t, proxy.Addr()), "metrics /metrics\n"
	for _, policy := range []string{"deny", "allow", "local"} {
		site += harness.Limited(policy, "key {header.Key}\nrate 3/1h\non_store_error "+policy, store, "respond ok")
	}
	s, client := harness.One(t, harness.Caddyfile("", site)), harness.NewClient(t, "")
	if n := s.Admitted(client, 1, "/deny"); n != 1 {
		t.Fatalf("%d of 1 admitted", n)
	}
	proxy.Forward(caddytest.FreeAddress(t))
	proxy.Inject(func(string) faultproxy.Fault { return faultproxy.CutBefore })
	for policy, want := range map[string][]int{"deny": {503, 503, 503, 503}, "allow": {200, 200, 200, 200}, "local": {200, 200, 200, 429}} {
		for i, status := range want {
			if a := s.Get(client, "/"+policy, "Key", "away"); a.Status != status {
				t.Errorf("%s: answer %d is %d, want %d", policy, i+1, a.Status, status)
			}
		}
	}
	s.AwaitLog(`"level":"error"`, harness.OurLogger)
	proxy.Forward(harness.SharedRedis(t).Addr())
	proxy.Inject(nil)
	patient.UntilEqual(t, "the first answer of Redis", func() int { return s.Get(client, "/deny").Status }, http.StatusOK)
	if n := s.Admitted(client, 3, "/deny"); n != 1 {
		t.Errorf("%d more admitted, want 1 of 3 in all", n)
	}
}
