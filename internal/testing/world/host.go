package world

import (
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/simredis"
)

// host is a Redis, and the machine that it runs on. Only the network's goroutine uses it.
type host struct {
	w     *world
	redis *simredis.Server
	free  time.Duration // when it is ready for the next command

	address  string
	sentinel *simredis.Sentinel // nil: it is a Redis
	back     time.Duration      // until when it is away

	offset  time.Duration // of its clock
	demoted bool          // it is a replica for good
}

// epoch is the time on a clock without an offset when a world begins, in microseconds since 1970: no full second, and
// no full minute.
const epoch = 1_700_000_123_456_789

func newHost(w *world, address string) *host {
	h := &host{w: w, address: address}
	h.redis = simredis.New(h.clock)
	h.redis.Expired = func(key string) {
		w.history.Commands = append(w.history.Commands, Command{At: w.net.now(), Host: h.address, Args: []string{Expired, key}})
	}
	h.redis.Touched = func(key string) {
		w.history.wrong("a script touches %s again, of which it has left nothing: it may not while a slot moves", key)
	}
	return h
}

// clock is the time on the host's clock, in microseconds since 1970.
func (h *host) clock() int64 { return epoch + (h.w.net.now() + h.offset).Microseconds() }

// state has the server be unable to do what it cannot do now, and returns that.
func (h *host) state() State {
	is := func(kind Kind) bool {
		return (h == h.w.host || h.w.plan.Layout == Cluster) && h.w.meets(kind, -1) != nil
	}
	r := h.redis
	r.Full, r.Readonly, r.Alone, r.Refuses, r.Forbidden = is(Full), is(Readonly) || h.demoted, is(NoReplicas), "", nil
	if is(Loading) {
		r.Refuses = "LOADING Redis is loading the dataset in memory"
	}
	if is(Forbid) {
		r.Forbidden = map[string]bool{"SET": true, "SETRANGE": true, "RPUSH": true, "ZADD": true}
	}
	return State{r.Full, r.Readonly, r.Alone, r.Forbidden != nil}
}

// service is how long a command takes.
const service = 20 * time.Microsecond

// receive takes bytes of a connection.
func (h *host) receive(c *conn, b []byte) {
	if h.away() || c.vanished {
		return
	}
	if len(c.asked) == 0 {
		c.asked = b // nobody else has it
	} else {
		c.asked = append(c.asked, b...)
	}
	h.serve(c)
}

// serve carries out what a connection has asked, one command after the other, when the host is ready.
func (h *host) serve(c *conn) {
	now := h.w.net.now()
	if c.serving || len(c.asked) == 0 || h.away() || c.vanished {
		return
	}
	if h.free > now {
		c.serving = true
		h.w.net.at(h.free, bag(c.asked)+c.sender(), func() {
			c.serving = false
			h.serve(c)
		})
		return
	}
	args, rest := simredis.Command(c.asked)
	if args == nil {
		return
	}
	c.asked = rest
	state := h.state()
	reply := c.session.Do(args...)
	if !strings.EqualFold(args[0], "hello") { // connections that are made at one instant are ready at one instant
		h.free = now + service
	}
	h.w.replies(c, reply)
	h.w.history.Commands = append(h.w.history.Commands, Command{now, h.clock(), h.address, c.in.number, state, args, reply})
	h.serve(c)
}
