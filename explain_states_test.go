package caddyratelimit_test

import (
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// stateSites are zones whose decision depends on what others do at the same time: requests that run, and operators.
const stateSites = `
http://slots.test {
	rate_limit {
		zone slots {
			key {header.X-User}
			missing_key skip
			algorithm concurrency
			events 2
			overrides
		}
		zone patient {
			key {header.X-User}
			missing_key skip
			algorithm concurrency
			events 3
			max_wait 5ms
		}
	}
	reverse_proxy UPSTREAM
}
http://waits.test {
	rate_limit {
		zone soon {
			algorithm leaky_bucket 1000/1s
			mode queue
			burst 1000
			max_wait 1h
		}
		zone held {
			key {header.X-User}
			algorithm fixed_window
			align first_request
			rate 2/20ms
			max_wait 1h
		}
	}
	respond ok
}
http://overrides.test {
	rate_limit {
		zone overrides {
			key {header.X-User}
			rate 3/500h
			overrides
			ban 5h after 3 refusals in 4h up_to 20h
		}
	}
	respond ok
}
`

var users = []string{"a", "b", "c", "d"}

// changing changes what the decisions of stateSites depend on.
type changing struct {
	*testing.T
	address string

	entered  chan struct{} // a request that is to be held has come to the upstream
	released chan struct{} // closed to let all of them go
	running  int           // how many these are
	answered chan struct{} // one of them is over
}

func newChanging(t *testing.T, address string) *changing {
	return &changing{T: t, address: address, entered: make(chan struct{}), released: make(chan struct{}), answered: make(chan struct{})}
}

// upstream answers a request.
func (c *changing) upstream(r *http.Request) {
	if r.URL.Path == "/hold" {
		released := c.released
		c.entered <- struct{}{}
		<-released
	}
}

// request returns a request to one of the sites.
func (c *changing) request(r *rand.Rand) adminapi.Request {
	host := one(r, "slots.test", "slots.test", "waits.test", "overrides.test")
	q := adminapi.Request{Method: "GET", From: "127.0.0.1", URL: "http://" + host + "/", Header: []string{"Host: " + host}}
	if r.IntN(8) > 0 {
		q.Header = append(q.Header, "X-User: "+one(r, users...))
	}
	return q
}

// change changes something.
func (c *changing) change(r *rand.Rand) {
	user := one(r, users...)
	switch r.IntN(7) {
	case 0, 1, 2:
		if c.running < 6 {
			c.hold(user)
		}
	case 3:
		c.release()
	case 4:
		zone := one(r, "slots", "overrides", "overrides")
		limits := one(r, `{"limit":"5/500h"}`, `{"limit":"0/500h"}`)
		if zone == "slots" {
			limits = `{"limit":1}`
		}
		switch r.IntN(4) {
		case 0:
			caddytest.Admin(c, "PUT", "zones/"+zone+"/key/override?key="+user, `{"limit":"exempt"}`)
		case 1:
			caddytest.Admin(c, "PUT", "zones/"+zone+"/key/ban?key="+user, one(r, `{}`, `{"for":"5h"}`))
		default:
			caddytest.Admin(c, "PUT", "zones/"+zone+"/key/override?key="+user, limits)
		}
	case 5:
		caddytest.Admin(c, "DELETE", "zones/"+one(r, "slots", "overrides")+"/key/override?key="+user, "")
	case 6:
		caddytest.Admin(c, "DELETE", "zones/"+one(r, "overrides", "turns")+"/key?key="+user, "")
	}
}

// hold begins a request that runs until it is released, unless it is refused.
func (c *changing) hold(user string) {
	q, err := http.NewRequest(http.MethodGet, "http://"+c.address+"/hold", nil)
	if err != nil {
		c.Fatal(err)
	}
	q.Host = "slots.test"
	q.Header.Set("X-User", user)
	over := make(chan int, 1)
	go func() {
		status := 0
		if response, err := http.DefaultClient.Do(q); err == nil {
			status = response.StatusCode
			response.Body.Close()
		}
		over <- status
		c.answered <- struct{}{}
	}()
	select {
	case <-c.entered:
		c.running++
	case <-c.answered:
		if status := <-over; status != http.StatusTooManyRequests {
			c.Fatalf("%s: status %d", user, status)
		}
	}
}

// release lets all requests go that run, and returns when their slots are back.
func (c *changing) release() {
	close(c.released)
	c.released = make(chan struct{})
	for ; c.running > 0; c.running-- {
		<-c.answered
	}
	for _, zone := range []string{"slots", "patient"} {
		for _, user := range users {
			patient.Until(c, "the slots of "+zone, func() bool {
				return c.key(zone, user).Used == 0
			})
		}
	}
}

// key returns the state of a key.
func (c *changing) key(zone, key string) (k adminapi.Key) {
	caddytest.AdminInto(c, "zones/"+zone+"/key?key="+key, &k)
	return k
}
