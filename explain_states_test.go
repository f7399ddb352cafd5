package caddyratelimit_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// stateSites are zones whose decision depends on what others do at the same time: requests that run, other processes,
// operators, and a Redis that comes and goes.
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
			events 2
			window 20ms
			max_wait 1h
		}
	}
	respond ok
}
http://overrides.test {
	rate_limit {
		zone overrides {
			key {header.X-User}
			events 3
			window 500h
			overrides
			ban 5h after 3 refusals in 4h up_to 20h
		}
	}
	respond ok
}
http://lent.test {
	rate_limit {
		zone lent {
			key {header.X-User}
			events 40
			window 500h
			lend 10s
		}
		zone beside {
			key {header.X-User}
			algorithm concurrency
			events 2
		}
		STORE
	}
	reverse_proxy UPSTREAM
}
http://down.test {
	rate_limit /allow {
		zone allow {
			key {header.X-User}
			events 3
			window 500h
		}
		STORE
	}
	rate_limit /deny {
		zone deny {
			key {header.X-User}
			events 3
			window 500h
			on_store_error deny
		}
		zone deny-dry {
			key {header.X-User}
			events 2
			window 500h
			on_store_error deny
			dry_run
		}
		STORE
	}
	rate_limit /local {
		zone local {
			key {header.X-User}
			events 6
			window 500h
			on_store_error local
		}
		zone local-allow {
			key {header.X-User}
			events 4
			window 500h
		}
		instances 2
		STORE
	}
	respond ok
}
`

var users = []string{"a", "b", "c", "d"}

// changing changes what the decisions of stateSites depend on.
type changing struct {
	*testing.T
	address string
	redis   *redistest.Server
	down    bool

	entered  chan struct{}    // a request that is to be held has come to the upstream
	released chan struct{}    // closed to let all of them go
	running  int              // how many these are
	beside   map[string]int64 // how many of these have a slot of beside, by user
	answered chan struct{}    // one of them is over
}

func newChanging(t *testing.T, address string) *changing {
	return &changing{T: t, address: address, redis: redistest.Start(t, redistest.WithPersistence()), entered: make(chan struct{}), released: make(chan struct{}), answered: make(chan struct{}), beside: make(map[string]int64)}
}

// config returns the sites.
func (c *changing) config(upstream string) string {
	return strings.NewReplacer("UPSTREAM", upstream, "STORE", "store redis {\naddress "+c.redis.Addr()+"\ntimeout 2s\n}").Replace(stateSites)
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
	host := one(r, "slots.test", "slots.test", "waits.test", "overrides.test", "lent.test", "lent.test", "down.test", "down.test")
	if c.down && host == "lent.test" { // what is held ends at some time
		host = "down.test"
	}
	path := "/"
	if host == "down.test" {
		path = one(r, "/allow", "/deny", "/local")
	}
	q := adminapi.Request{Method: "GET", From: "127.0.0.1", URL: "http://" + host + path, Header: []string{"Host: " + host}}
	if r.IntN(8) > 0 {
		q.Header = append(q.Header, "X-User: "+one(r, users...))
	}
	return q
}

// change changes something.
func (c *changing) change(r *rand.Rand) {
	user := one(r, users...)
	switch r.IntN(8) {
	case 0, 1, 2:
		if !c.down && c.running < 6 {
			c.hold(one(r, "slots.test", "lent.test"), user)
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
			caddytest.Admin(c, "PUT", "zones/"+zone+"/key/override?key="+user, `{"exempt":true}`)
		case 1:
			caddytest.Admin(c, "PUT", "zones/"+zone+"/key/ban?key="+user, one(r, `{}`, `{"for":"5h"}`))
		default:
			caddytest.Admin(c, "PUT", "zones/"+zone+"/key/override?key="+user, limits)
		}
	case 5:
		caddytest.Admin(c, "DELETE", "zones/"+one(r, "slots", "overrides")+"/key/override?key="+user, "")
	case 6:
		zones := []string{"overrides", "turns"}
		if !c.down {
			zones = append(zones, "allow", "local", "lent")
		}
		caddytest.Admin(c, "DELETE", "zones/"+one(r, zones...)+"/key?key="+user, "")
	case 7:
		if r.IntN(5) == 0 { // it takes longer than all others
			c.turn()
		}
	}
}

// hold begins a request that runs until it is released, unless it is refused.
func (c *changing) hold(host, user string) {
	q, err := http.NewRequest(http.MethodGet, "http://"+c.address+"/hold", nil)
	if err != nil {
		c.Fatal(err)
	}
	q.Host = host
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
		if host == "lent.test" {
			c.beside[user]++
		}
	case <-c.answered:
		if status := <-over; status != http.StatusTooManyRequests {
			c.Fatalf("%s %s: status %d", host, user, status)
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
	clear(c.beside)
	for _, user := range users {
		c.awaitReturns(user)
	}
}

// awaitReturns waits until Redis knows that requests are over, so that what is not used is free.
func (c *changing) awaitReturns(user string) {
	if c.down {
		return
	}
	patient.Until(c, "the slots of beside", func() bool { return c.key("beside", user).Used == c.beside[user] })
}

// key returns the state of a key.
func (c *changing) key(zone, key string) (k adminapi.Key) {
	if err := json.Unmarshal([]byte(caddytest.Admin(c, "GET", "zones/"+zone+"/key?key="+key, "")), &k); err != nil {
		c.Fatal(err)
	}
	return k
}

// over waits until a request is over.
func (c *changing) over(q *adminapi.Request) {
	if strings.Contains(q.URL, "lent.test") {
		_, user, _ := strings.Cut(q.Header[len(q.Header)-1], "X-User: ")
		c.awaitReturns(user)
	}
}

// turn stops Redis, or starts it again and waits until the store decides with it.
func (c *changing) turn() {
	if c.running > 0 {
		c.release()
	}
	if c.down = !c.down; c.down {
		for _, zone := range []string{"allow", "deny", "deny-dry", "local", "local-allow"} { // what is refused now is known for a moment
			for _, user := range append(users, "") {
				caddytest.Admin(c, "DELETE", "zones/"+zone+"/key?key="+user, "")
			}
		}
		c.redis.Kill()
		patient.Until(c, "the outage", func() bool { return c.outcome() == "failed_open" })
		return
	}
	c.redis.Restart()
	patient.Until(c, "the store", func() bool { return c.outcome() == "allowed" })
}

// outcome returns that of a request that needs Redis and is charged to no other client.
func (c *changing) outcome() string {
	return explain(c.T, adminapi.Request{URL: "http://" + strings.Replace(c.address, "127.0.0.1", "down.test", 1) + "/allow", Header: []string{"X-User: nobody " + fmt.Sprint(time.Now().UnixNano())}}).Outcome
}
