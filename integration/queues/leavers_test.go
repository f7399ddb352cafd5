//go:build deep

package queues_test

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
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
