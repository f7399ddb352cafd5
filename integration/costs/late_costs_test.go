//go:build deep

// Package costs_test tests costs that are known late: of responses, of bodies, and of tokens of language models.
package costs_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

func TestMain(m *testing.M) { harness.Main(m) }

// credentials is a complete body. What follows it on the connection is not part of it.
const credentials = `{"user":"a"}`

// chunk is a part of a chunked body.
func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// chunked is the head of a request with a chunked body.
const chunked = "Transfer-Encoding: chunked"

// brokenBodies are ways to break a request whose body the upstream has read. The largest
// body is 1 KB: before the limit on /before, and behind it elsewhere.
var brokenBodies = []struct{ name, path, framing, begins, breaks string }{
	{"malformed chunk", "/before", chunked, chunk(credentials), "ZZ\r\n"},
	{"size before", "/before", chunked, chunk(credentials), chunk(strings.Repeat(" ", 4000)) + "0\r\n\r\n"},
	{"size behind", "/behind", chunked, chunk(credentials), chunk(strings.Repeat(" ", 4000)) + "0\r\n\r\n"},
}

// bodySite limits requests whose bodies clients break, by status and by cost, and logs each
// request when it ends.
func bodySite(store string) string {
	const (
		size   = "request_body {\nmax_size 1KB\n}\n"
		status = "match path */status\nkey {header.X-Client}\nalgorithm fixed_window 3/year\ncharge {\nstatus 401 403\n}"
		cost   = "match path */cost\nkey {header.X-Client}\nalgorithm fixed_window 15/year\ncharge {\nheader X-Tokens-Used\nbroken_off 5\n}"
	)
	limit := "rate_limit {\nzone status {\n" + status + "\n}\nzone cost {\n" + cost + "\n}\n" + store + "}\n"
	route := func(path, handlers string) string {
		return "handle " + path + " {\nroute {\n" + handlers + "reverse_proxy {$UPSTREAM}\n}\n}\n"
	}
	return harness.Caddyfile("servers {\nprotocols h1 h2c\n}", "log\n"+route("/before/*", size+limit)+route("/behind/*", limit+size)+route("", limit))
}

// login reads credentials, and answers when its gate opens. A request whose gate has no name is
// good, and answered at once.
func login(worked chan<- struct{}) func(b *harness.Backend, w http.ResponseWriter, r *http.Request) {
	return func(b *harness.Backend, w http.ResponseWriter, r *http.Request) {
		var v struct{ User string }
		if json.NewDecoder(r.Body).Decode(&v) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		worked <- struct{}{}
		status := http.StatusOK
		if gate := r.Header.Get("X-Gate"); gate != "" {
			<-b.Gate(gate)
			status = http.StatusUnauthorized
		}
		w.WriteHeader(status)
	}
}

// breakBody sends a request, and breaks its body off when the upstream has read the credentials.
// It returns the status of the answer, and reports whether the upstream has read them.
func breakBody(t *testing.T, s *harness.Server, worked <-chan struct{}, head, begins, breaks string) (status int, works bool) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patient.Patience))
	if _, err := io.WriteString(conn, head+"\r\n\r\n"+begins); err != nil {
		t.Fatal(err)
	}
	answered := make(chan int, 1)
	go func() {
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			answered <- 0
			return
		}
		answered <- response.StatusCode
		response.Body.Close()
	}()
	select {
	case status := <-answered:
		return status, false
	case <-worked:
	}
	if _, err := io.WriteString(conn, breaks); err != nil {
		t.Fatal(err)
	}
	return <-answered, true
}

// TestClientsThatBreakTheirBodiesPay: a client whose body ends in an error after the upstream has
// read what it needs is charged, although the client stays and is answered 502 or 413.
func TestClientsThatBreakTheirBodiesPay(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		worked := make(chan struct{})
		b := harness.StartBackend(t, login(worked))
		s := harness.StartCaddy(t, bodySite(store), b.Variable())
		defer b.Open("never")
		for zone, z := range map[string]struct{ costs, good int64 }{"status": {1, 0}, "cost": {5, 1}} {
			for _, c := range brokenBodies {
				t.Run(zone+", "+c.name, func(t *testing.T) {
					path := c.path + "/" + zone
					head := "POST " + path + " HTTP/1.1\r\nHost: a\r\nX-Client: " + c.name + "\r\n" + c.framing
					for i := range int64(3) {
						status, works := breakBody(t, s, worked, head+"\r\nX-Gate: never", c.begins, c.breaks)
						if !works || status != http.StatusBadGateway && status != http.StatusRequestEntityTooLarge {
							t.Fatalf("attempt %d: status %d, the upstream worked: %v", i+1, status, works)
						}
						s.AwaitUsed(path, zone, url.QueryEscape(c.name), (i+1)*z.costs)
					}
					// The server answers after it has read the body, so all of the body is sent
					// at once.
					if status, works := breakBody(t, s, worked, head+"\r\nX-Gate: never", c.begins+c.breaks, ""); works || status != http.StatusTooManyRequests {
						t.Errorf("beyond the limit: status %d, the upstream worked: %v", status, works)
					}
					// A client that sends a good body and gets an answer is charged as the answer
					// says.
					good := strings.Replace(head, c.name, "good "+c.name, 1)
					if status, works := breakBody(t, s, worked, good, c.begins, "0\r\n\r\n"); !works || status != http.StatusOK {
						t.Errorf("a good body: status %d, the upstream worked: %v", status, works)
					}
					s.AwaitUsed(path, zone, url.QueryEscape("good "+c.name), z.good)
				})
			}
		}
	})
}

// lateSite has a limit of 100. Each request takes one, unless its response says 50, or is one that does not count.
func lateSite(store string) string {
	return harness.Caddyfile("", "rate_limit {\nzone late {\nkey {header.X-Client}\nalgorithm fixed_window 100/year\n"+
		"charge {\nheader X-Tokens-Used\nstatus 200\n}\n}\n"+store+"}\nreverse_proxy {$UPSTREAM}")
}

// late answers when its gate opens.
func late(b *harness.Backend, w http.ResponseWriter, r *http.Request) {
	<-b.Gate(r.Header.Get("X-Gate"))
	if used := r.Header.Get("X-Use"); used != "" {
		w.Header().Set("X-Tokens-Used", used)
	}
	if r.Header.Get("X-Fail") != "" {
		w.WriteHeader(http.StatusTeapot)
	}
}

// TestLateChargesAfterReload: adjustments of requests that are in progress during a reload are
// made.
func TestLateChargesAfterReload(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		b := harness.StartBackend(t, late)
		config := lateSite(store)
		s := harness.StartCaddy(t, config, b.Variable())
		answers := make(chan int, 2)
		for _, header := range [][]string{{"X-Use", "50"}, {"X-Fail", "1"}} {
			go func() {
				a, _ := harness.Send(harness.NewClient(t, ""), s.URL("/"), append(header, "X-Client", "me", "X-Gate", "reload")...)
				answers <- a.Status
			}()
		}
		b.AwaitInside(t, 2)
		s.AwaitUsed("while both are under way", "late", "me", 2)
		// The zone stays, and the handler does not.
		other := strings.Replace(config, "rate_limit {", "rate_limit {\nstatus 420\n", 1)
		s.MustLoad(other)
		b.Open("reload")
		if first, second := <-answers, <-answers; first+second != http.StatusOK+http.StatusTeapot {
			t.Fatalf("answers %d and %d", first, second)
		}
		s.AwaitUsed("when both are over", "late", "me", 50)
	})
}

// TestSlowBody: a body that is looked at and does not come within ten seconds is refused, and costs nothing.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		rate_limit {
			zone tokens {
				algorithm fixed_window 100/1000h
				cost      {http.rate_limit.json.max_tokens} 10
			}
		}
		respond ok`))
	conn, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 18\r\n\r\n{\"max_tokens\"")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if used := s.Spent("tokens", "").Used; response.StatusCode != http.StatusRequestTimeout || used != 0 {
		t.Errorf("status %d, and it has cost %d", response.StatusCode, used)
	}
}
