package queues_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// crowd is requests that wait. Some of them stay, and the clients of the others leave.
type crowd struct{ stay, leave []*harness.Pending }

// join has n requests wait in a server's queue, behind those that are there. One request of every
// ten stays.
func (c *crowd) join(s *harness.Server, path string, n int) {
	s.T.Helper()
	already := s.Waiting()
	for i := range n {
		if p := s.Begin(path, "X-Request-Id", strconv.Itoa(i)); i%10 == 9 {
			c.stay = append(c.stay, p)
		} else {
			c.leave = append(c.leave, p)
		}
	}
	s.AwaitWaiting(already + n)
}

// disperse has the clients of all others leave, in any order.
func (c *crowd) disperse() {
	rand.Shuffle(len(c.leave), func(i, j int) { c.leave[i], c.leave[j] = c.leave[j], c.leave[i] })
	for _, p := range c.leave {
		p.Leave()
	}
}

// TestLeaversKeepNoTurns: of many clients that wait in a queue, most leave, in any order. Then
// the queue has the turns of the requests that stay, and no others, so the next request waits for
// these alone.
func TestLeaversKeepNoTurns(t *testing.T) {
	t.Parallel()
	for _, crowded := range []int{40, 300} {
		t.Run(strconv.Itoa(crowded), func(t *testing.T) {
			harness.EachStore(t, func(t *testing.T, store string) {
				s := harness.StartCaddy(t, harness.Caddyfile("", harness.Limited("queue", "algorithm leaky_bucket 1/1h\nmode queue\nburst 1000", store, "respond ok")))
				client := harness.NewClient(t, "")
				if a := s.Get(client, "/queue"); a.Status != http.StatusOK {
					t.Fatalf("status %d", a.Status)
				}
				var c crowd
				c.join(s, "/queue", crowded)
				s.AwaitLeft(client, "queue", int64(999-crowded))
				c.disperse()
				s.AwaitLeft(client, "queue", int64(999-len(c.stay)))
				c.join(s, "/queue", 1)
				s.AwaitLeft(client, "queue", int64(998-len(c.stay)))
				for _, p := range c.stay {
					if p.Over() {
						t.Errorf("one who stayed was answered: %+v, %v", p.Answer, p.Err)
					}
				}
				s.Sound(t)
			})
		})
	}
}

// TestNextAfterLeavers reports how long the next request waits in a queue of 10/s that many
// clients have left.
func TestNextAfterLeavers(t *testing.T) {
	patient.BesideOthers(t)
	for _, crowded := range []int{40, 300} {
		harness.EachStore(t, func(t *testing.T, store string) {
			s := harness.StartCaddy(t, harness.Caddyfile("", harness.Limited("queue", "algorithm leaky_bucket 10/1s\nmode queue\nburst 1000", store, "respond ok")))
			var c crowd
			for range crowded {
				c.leave = append(c.leave, s.Begin("/queue"))
			}
			patient.Until(t, "all to wait", func() bool {
				done := 0
				for _, p := range c.leave {
					if p.Over() {
						done++
					}
				}
				return s.Waiting() >= crowded-done-1
			})
			c.disperse()
			s.AwaitWaiting(0)
			a := s.Get(harness.NewClient(t, ""), "/queue")
			t.Logf("%d have left, and the next waited for %v", crowded, a.Done.Sub(a.Sent))
			if a.Status != http.StatusOK {
				t.Errorf("status %d", a.Status)
			}
			patient.Soon(t, "the next", a.Done.Sub(a.Sent), time.Second)
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
	upstream := harness.StartBackend(t, func(_ *harness.Backend, w http.ResponseWriter, _ *http.Request) {})
	both := harness.StartPair(t, harness.Caddyfile("", harness.Limited("queue", fmt.Sprintf("algorithm leaky_bucket 1/%v\nmode queue\nburst 1000", interval),
		harness.Redis(redistest.Start(t).Addr()), "reverse_proxy {$UPSTREAM}")), upstream.Variable())
	for _, s := range both {
		s.Left(harness.NewClient(t, ""), "queue") // so that all know the script
	}
	began := time.Now()
	var all []*crowd
	for round := range 4 {
		c := new(crowd)
		all = append(all, c)
		for i := range 60 {
			p := both[i%2].Begin("/queue")
			if i%4 == 3 {
				c.stay = append(c.stay, p)
			} else {
				c.leave = append(c.leave, p)
			}
		}
		patient.Until(t, "some to wait", func() bool {
			return both[0].Waiting() > 0 && both[1].Waiting() > 0 || len(upstream.Came()) > 30*(round+1)
		})
		c.disperse()
	}
	for _, c := range all {
		for _, p := range c.stay {
			if a := p.Result(); a.Status != http.StatusOK {
				t.Errorf("status %d", a.Status)
			}
		}
	}
	came := upstream.Came()
	for i, v := range came {
		if turn := began.Add(time.Duration(i) * interval); v.At.Before(turn.Add(-clockSlack)) {
			t.Errorf("request %d came %v too early", i, turn.Sub(v.At))
		}
	}
	took := came[len(came)-1].At.Sub(began)
	t.Logf("%d requests reached the upstream in %v, of 240 of which 60 stayed", len(came), took)
	patient.Soon(t, "all of it", took, 15*time.Second)
	for _, s := range both {
		s.AwaitWaiting(0)
		s.Sound(t)
	}
}

// TestFleetGetsTurnsBack: clients leave two instances where their requests have alternate turns.
// Neither Caddy can give a turn back while the other has a later one, so both try again, until
// all turns are back but that of the request that stays.
func TestFleetGetsTurnsBack(t *testing.T) {
	t.Parallel()
	both := harness.StartPair(t, harness.Caddyfile("", harness.Limited("queue", "algorithm leaky_bucket 1/1h\nmode queue\nburst 1000", harness.Redis(redistest.Start(t).Addr()), "respond ok")))
	client := harness.NewClient(t, "")
	if a := both[0].Get(client, "/queue"); a.Status != http.StatusOK {
		t.Fatalf("status %d", a.Status)
	}
	stays := both[1].Begin("/queue")
	both[0].AwaitLeft(client, "queue", 998)
	var c crowd
	for i := range 12 {
		c.leave = append(c.leave, both[i%2].Begin("/queue"))
		both[0].AwaitLeft(client, "queue", int64(997-i))
	}
	c.disperse()
	both[0].AwaitLeft(client, "queue", 998)
	if stays.Over() {
		t.Errorf("the one who stays was answered: %+v, %v", stays.Answer, stays.Err)
	}
	for _, s := range both {
		s.Sound(t)
	}
}
