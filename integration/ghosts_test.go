package integration_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// ghostSite has a queue and a zone with max_wait where no request gets a turn while a test runs,
// and a queue that moves.
func ghostSite(store string) string {
	return limited("queue", "algorithm leaky_bucket 1/1h\nburst 100\nmode queue", store, "reverse_proxy {$UPSTREAM}") +
		limited("patient", "algorithm token_bucket 1/30m\nburst 1\nmax_wait 1h", store, "reverse_proxy {$UPSTREAM}") +
		limited("moving", "algorithm leaky_bucket 1/1s\nburst 100\nmode queue", store, "reverse_proxy {$UPSTREAM}") +
		"metrics /metrics"
}

// ghosts are requests of which nothing is read while they wait: their bodies have come
// completely, in part, or not at all.
var ghosts = []string{
	"Content-Length: 5\r\n\r\nhello",
	"Content-Length: 5\r\n\r\nhell",
	"Content-Length: 5\r\n\r\n",
	"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
	"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	"Content-Length: 50000\r\n\r\n" + strings.Repeat("x", 50_000),
	"Content-Length: 1000000000\r\n\r\n" + strings.Repeat("x", 50_000),
}

// TestGhosts: when a client of HTTP/1 has sent a body, or part of one, and leaves, its request
// gives its turn back and is not forwarded.
func TestGhosts(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		b := startBackend(t, func(_ *backend, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
		s, versions := startEveryVersion(t, "", ghostSite(store), b.variable())
		client := newClient(t, "")
		for _, zone := range []string{"queue", "patient"} {
			if a := s.get(client, "/"+zone); a.status != http.StatusOK {
				t.Fatalf("%s: status %d", zone, a.status)
			}
		}
		abandoned := 0
		for _, dial := range []func() (net.Conn, error){
			func() (net.Conn, error) { return net.Dial("tcp", s.address) },
			func() (net.Conn, error) {
				at, err := url.Parse(versions[1].url)
				if err != nil {
					return nil, err
				}
				return tls.Dial("tcp", at.Host, &tls.Config{ServerName: "localhost", InsecureSkipVerify: true}) // nothing secret here
			},
		} {
			for _, zone := range []string{"queue", "patient"} {
				var waiting []net.Conn
				for i := range 12 {
					conn, err := dial()
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
					if _, err := io.WriteString(conn, "POST /"+zone+" HTTP/1.1\r\nHost: localhost\r\n"+ghosts[i%len(ghosts)]); err != nil {
						t.Fatal(err)
					}
					waiting = append(waiting, conn)
					s.awaitWaiting(len(waiting))
				}
				for len(waiting) > 0 { // the last one first, because its turn is the last
					last := len(waiting) - 1
					waiting[last].Close()
					waiting = waiting[:last]
					s.awaitWaiting(len(waiting))
				}
				if zone == "queue" {
					s.awaitLeft(client, zone, 99)
				}
			}
			abandoned += 12
			for _, zone := range []string{"queue", "patient"} {
				want := fmt.Sprintf(`decisions_total{outcome="abandoned",zone="%s"} %d`, zone, abandoned)
				patient.Until(t, want, func() bool { return strings.Contains(s.scrape(client), want) })
			}
		}
		if n := len(b.came()); n != 2 {
			t.Errorf("the upstream saw %d requests, want the 2 whose clients stayed", n)
		}
	})
}

// TestBodiesOfThoseWhoWait: the body of a request that has waited is forwarded byte for byte,
// with its trailer, and asked for only then.
func TestBodiesOfThoseWhoWait(t *testing.T) {
	t.Parallel()
	var bodies [3][]byte
	for i, size := range []int{5, 70_000, 3_000_000} {
		bodies[i] = bytes.Repeat([]byte("0123456789abcdef\r\n"), size/18+1)[:size]
	}
	b := startBackend(t, func(_ *backend, w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Sum", r.Trailer.Get("X-Sum"))
		_, _ = w.Write(body)
	})
	s, versions := startEveryVersion(t, "", ghostSite(memory), b.variable())
	client := newClient(t, "")
	if a := s.get(client, "/moving"); a.status != http.StatusOK {
		t.Fatalf("status %d", a.status)
	}
	for _, to := range versions {
		for _, body := range bodies {
			r, err := http.NewRequest(http.MethodPost, to.url+"/moving", io.MultiReader(bytes.NewReader(body))) // chunked
			if err != nil {
				t.Fatal(err)
			}
			r.Trailer = http.Header{"X-Sum": {"42"}}
			response, err := to.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(response.Body)
			response.Body.Close()
			sum := response.Header.Get("X-Sum")
			if err != nil || !bytes.Equal(got, body) || sum != "42" && to.major < 3 { // this client of HTTP/3 sends no trailers
				t.Errorf("HTTP/%d: of %d bytes %d came, trailer %q, %v", to.major, len(body), len(got), sum, err)
			}
		}
	}
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /moving HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(conn)
	interim, err := http.ReadResponse(from, nil)
	if err != nil || interim.StatusCode != http.StatusContinue {
		t.Fatalf("%+v, %v", interim, err)
	}
	interim.Body.Close()
	if s.waiting() != 0 {
		t.Error("a body was asked for while its request waited")
	}
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	response := interim
	for response.StatusCode == http.StatusContinue { // those of the upstream may be passed on too
		if response, err = http.ReadResponse(from, nil); err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
	}
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "hello" {
		t.Errorf("body %q, %v", body, err)
	}
}
