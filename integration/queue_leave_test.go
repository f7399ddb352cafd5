package integration_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// crowd is requests that wait. Some of them stay, and the clients of the others leave.
type crowd struct{ stay, leave []*pending }

// join has n requests wait in a server's queue, behind those that are there. One request of every
// ten stays.
func (c *crowd) join(s *server, path string, n int) {
	s.t.Helper()
	already := s.waiting()
	for i := range n {
		if p := s.begin(path, "X-Request-Id", strconv.Itoa(i)); i%10 == 9 {
			c.stay = append(c.stay, p)
		} else {
			c.leave = append(c.leave, p)
		}
	}
	s.awaitWaiting(already + n)
}

// disperse has the clients of all others leave, in any order.
func (c *crowd) disperse() {
	rand.Shuffle(len(c.leave), func(i, j int) { c.leave[i], c.leave[j] = c.leave[j], c.leave[i] })
	for _, p := range c.leave {
		p.leave()
	}
}

// TestLeaversKeepNoTurns: of many clients that wait in a queue, most leave, in any order. Then
// the queue has the turns of the requests that stay, and no others, so the next request waits for
// these alone.
func TestLeaversKeepNoTurns(t *testing.T) {
	t.Parallel()
	for _, crowded := range []int{40, 300} {
		t.Run(strconv.Itoa(crowded), func(t *testing.T) {
			eachStore(t, func(t *testing.T, store string) {
				s := startCaddy(t, caddyfile("", limited("queue", "algorithm leaky_bucket 1/1h\nmode queue\nburst 1000", store, "respond ok")))
				client := newClient(t, "")
				if a := s.get(client, "/queue"); a.status != http.StatusOK {
					t.Fatalf("status %d", a.status)
				}
				var c crowd
				c.join(s, "/queue", crowded)
				s.awaitLeft(client, "queue", int64(999-crowded))
				c.disperse()
				s.awaitLeft(client, "queue", int64(999-len(c.stay)))
				c.join(s, "/queue", 1)
				s.awaitLeft(client, "queue", int64(998-len(c.stay)))
				for _, p := range c.stay {
					if p.over() {
						t.Errorf("one who stayed was answered: %+v, %v", p.answer, p.err)
					}
				}
				s.sound(t)
			})
		})
	}
}

// TestNextAfterLeavers reports how long the next request waits in a queue of 10/s that many
// clients have left.
func TestNextAfterLeavers(t *testing.T) {
	patient.BesideOthers(t)
	for _, crowded := range []int{40, 300} {
		eachStore(t, func(t *testing.T, store string) {
			s := startCaddy(t, caddyfile("", limited("queue", "algorithm leaky_bucket 10/1s\nmode queue\nburst 1000", store, "respond ok")))
			var c crowd
			for range crowded {
				c.leave = append(c.leave, s.begin("/queue"))
			}
			patient.Until(t, "all to wait", func() bool {
				done := 0
				for _, p := range c.leave {
					if p.over() {
						done++
					}
				}
				return s.waiting() >= crowded-done-1
			})
			c.disperse()
			s.awaitWaiting(0)
			a := s.get(newClient(t, ""), "/queue")
			t.Logf("%d have left, and the next waited for %v", crowded, a.done.Sub(a.sent))
			if a.status != http.StatusOK {
				t.Errorf("status %d", a.status)
			}
			patient.Soon(t, "the next", a.done.Sub(a.sent), time.Second)
		})
	}
}

// TestLeaversOfAFleet: requests wait in two instances for turns of one queue, and many clients
// leave. However the turns are handed on, no more requests reach the upstream than the limit lets
// through: the first is decided after it was sent, and each other one leaves an interval or more
// after the one before it.
func TestLeaversOfAFleet(t *testing.T) {
	patient.BesideOthers(t)
	const interval = 100 * time.Millisecond
	upstream := startBackend(t, func(_ *backend, w http.ResponseWriter, _ *http.Request) {})
	both := startPair(t, caddyfile("", limited("queue", fmt.Sprintf("algorithm leaky_bucket 1/%v\nmode queue\nburst 1000", interval),
		redis(redistest.Start(t).Addr()), "reverse_proxy {$UPSTREAM}")), upstream.variable())
	for _, s := range both {
		s.left(newClient(t, ""), "queue") // so that all know the script
	}
	began := time.Now()
	var all []*crowd
	for round := range 4 {
		c := new(crowd)
		all = append(all, c)
		for i := range 60 {
			p := both[i%2].begin("/queue")
			if i%4 == 3 {
				c.stay = append(c.stay, p)
			} else {
				c.leave = append(c.leave, p)
			}
		}
		patient.Until(t, "some to wait", func() bool {
			return both[0].waiting() > 0 && both[1].waiting() > 0 || len(upstream.came()) > 30*(round+1)
		})
		c.disperse()
	}
	for _, c := range all {
		for _, p := range c.stay {
			if a := p.result(); a.status != http.StatusOK {
				t.Errorf("status %d", a.status)
			}
		}
	}
	came := upstream.came()
	for i, v := range came {
		if turn := began.Add(time.Duration(i) * interval); v.at.Before(turn.Add(-clockSlack)) {
			t.Errorf("request %d came %v too early", i, turn.Sub(v.at))
		}
	}
	took := came[len(came)-1].at.Sub(began)
	t.Logf("%d requests reached the upstream in %v, of 240 of which 60 stayed", len(came), took)
	patient.Soon(t, "all of it", took, 15*time.Second)
	for _, s := range both {
		s.awaitWaiting(0)
		s.sound(t)
	}
}

// TestFleetGetsTurnsBack: clients leave two instances where their requests have alternate turns.
// Neither Caddy can give a turn back while the other has a later one, so both try again, until
// all turns are back but that of the request that stays.
func TestFleetGetsTurnsBack(t *testing.T) {
	t.Parallel()
	both := startPair(t, caddyfile("", limited("queue", "algorithm leaky_bucket 1/1h\nmode queue\nburst 1000", redis(redistest.Start(t).Addr()), "respond ok")))
	client := newClient(t, "")
	if a := both[0].get(client, "/queue"); a.status != http.StatusOK {
		t.Fatalf("status %d", a.status)
	}
	stays := both[1].begin("/queue")
	both[0].awaitLeft(client, "queue", 998)
	var c crowd
	for i := range 12 {
		c.leave = append(c.leave, both[i%2].begin("/queue"))
		both[0].awaitLeft(client, "queue", int64(997-i))
	}
	c.disperse()
	both[0].awaitLeft(client, "queue", 998)
	if stays.over() {
		t.Errorf("the one who stays was answered: %+v, %v", stays.answer, stays.err)
	}
	for _, s := range both {
		s.sound(t)
	}
}
