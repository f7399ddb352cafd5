package caddyratelimit_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// explainSites are sites with more in them than rate_limit.
const explainSites = `{
	servers {
		trusted_proxies static 10.0.0.0/8
		client_ip_headers X-Real-Ip X-Forwarded-For
	}
}
http://routes.test {
	handle /huge {
		rate_limit {
			zone huge {
				rate 5/500h
				cost 6
			}
		}
	}
	handle /proxied {
		rate_limit {
			zone clients {
				key {client_ip}
				rate 5/500h
			}
		}
	}
}
http://down.test {
	rate_limit /allow {
		zone allow {
			rate 5/1h
		}
		STORE
	}
	rate_limit /local {
		zone local {
			rate 6/1h
			on_store_error local
		}
		instances 3
		STORE
	}
	rate_limit /deny {
		zone deny {
			rate 5/1h
			on_store_error deny
		}
		STORE
	}
	respond ok
}
`

// TestExplain: what explain says of trusted proxies, of a cost above the limit, and of a store that does not answer. Package walk
// tests what happens to requests before, such as authentication, and TestExplainAgrees the rest.
func TestExplain(t *testing.T) {
	address := caddytest.FreeAddress(t)
	down := fmt.Sprintf("store redis {\naddress 127.0.0.1:%d\ntimeout 100ms\n}", redistest.FreePort(t))
	caddytest.RunConfig(t, address, strings.ReplaceAll(explainSites, "STORE", down))
	_, port, _ := net.SplitHostPort(address)
	counted := func() string {
		return caddytest.Admin(t, "GET", "zones", "") + caddytest.Admin(t, "GET", "top", "")
	}
	ages := regexp.MustCompile(`"[a-z]+_after": .*`)
	before := ages.ReplaceAllString(counted(), "")
	for _, c := range []struct {
		name    string
		request adminapi.Request
		want    []string // in the answer, as JSON without spaces
	}{
		{"too dear", adminapi.Request{URL: "http://routes.test/huge"}, []string{`"outcome":"limited","passes":false,"zone":"huge","status":429,"never":true`, `"cost":6`}},
		{"trusted proxy", adminapi.Request{URL: "http://routes.test/proxied", From: "10.1.2.3:4", Header: []string{"X-Real-Ip: 203.0.113.9"}}, []string{
			`"from":"10.1.2.3:4","client_ip":"203.0.113.9"`, `"key":"203.0.113.9"`,
		}},
		{"IPv6", adminapi.Request{URL: "http://routes.test/proxied", From: "[2001:db8::1]:9"}, []string{`"key":"2001:db8::/64"`, `"from":"[2001:db8::1]:9"`}},
		{"store down, allow", adminapi.Request{URL: "http://down.test/allow"}, []string{`"outcome":"failed_open","passes":true`, `does not answer (`, `on_store_error allow"`}},
		{"store down, local", adminapi.Request{URL: "http://down.test/local"}, []string{`"outcome":"local","passes":true`, `"limit":"sliding_window_log 2/1h"`}},
		{"store down, deny", adminapi.Request{URL: "http://down.test/deny"}, []string{`"outcome":"failed_closed","passes":false,"status":503`, `on_store_error deny"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := url.Parse(c.request.URL)
			if err != nil {
				t.Fatal(err)
			}
			c.request.Header = append(c.request.Header, "Host: "+u.Host)
			c.request.URL = strings.Replace(c.request.URL, ".test/", ".test:"+port+"/", 1)
			text, err := json.Marshal(explain(t, c.request))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(string(text), want) {
					t.Errorf("no %s in %s", want, text)
				}
			}
		})
	}
	explainHostile(t, port)
	if after := ages.ReplaceAllString(counted(), ""); after != before {
		t.Errorf("to explain has changed what was counted:\n%s\nbefore:\n%s", after, before)
	}
}

// explainHostile checks that requests which cannot be are errors that say what is wrong.
func explainHostile(t *testing.T, port string) {
	at := "http://routes.test:" + port + "/proxied"
	for _, c := range []struct {
		body   any
		status int
		want   string
	}{
		{"{", 400, "the body must be a JSON object"},
		{`{"url": "` + at + `", "fly": true}`, 400, "fly"},
		{strings.Repeat(" ", 2<<20), 413, "the body has more than 1048576 bytes"},
		{adminapi.Request{}, 400, `url "": write a whole URL`},
		{adminapi.Request{URL: "/login"}, 400, "write a whole URL"},
		{adminapi.Request{URL: "http://routes.test:" + port + "/%zz"}, 400, "invalid URL escape"},
		{adminapi.Request{URL: "http://routes.test:1/"}, 400, "no server listens on port 1; the servers are srv0 ("},
		{adminapi.Request{URL: "https://routes.test:" + port + "/"}, 400, "server srv0 has no TLS there"},
		{adminapi.Request{URL: at, Server: "other"}, 400, `no server "other"; the servers are srv0`},
		{adminapi.Request{URL: at, Method: "GE T"}, 400, `invalid method "GE T"`},
		{adminapi.Request{URL: at, From: "example.com"}, 400, `from "example.com": write an IP address`},
		{adminapi.Request{URL: at, Header: []string{"X-Foo"}}, 400, "write it as 'Name: value'"},
		{adminapi.Request{URL: at, Header: []string{"X Y: x"}}, 400, "is not the name of a header"},
		{adminapi.Request{URL: at, Header: []string{"X-Y: a\r\nX-Z: b"}}, 400, "has a control character"},
	} {
		body, isText := c.body.(string)
		if !isText {
			text, err := json.Marshal(c.body)
			if err != nil {
				t.Fatal(err)
			}
			body = string(text)
		}
		if status, got := caddytest.AdminStatus(t, http.MethodPost, "explain", body); status != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%.200s: %d %.500s, want %d with %q", body, status, got, c.status, c.want)
		}
	}
}

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
