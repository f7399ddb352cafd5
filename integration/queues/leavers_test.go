//go:build deep

// Package queues_test tests requests that wait or hold a slot: their order, how long they wait, and what is given back when a
// client leaves or a Caddy ends.
package queues_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

func TestMain(m *testing.M) { harness.Main(m) }

// ghostSite has a queue and a zone with max_wait where no request gets a turn while a test runs,
// and a queue that moves.
func ghostSite(store string) string {
	return harness.Limited("queue", "algorithm leaky_bucket 1/1h\nburst 100\nmode queue", store, "reverse_proxy {$UPSTREAM}") +
		harness.Limited("patient", "algorithm token_bucket 1/30m\nburst 1\nmax_wait 1h", store, "reverse_proxy {$UPSTREAM}") +
		harness.Limited("moving", "algorithm leaky_bucket 1/1s\nburst 100\nmode queue", store, "reverse_proxy {$UPSTREAM}")
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

// TestLeaversWithBodies: when a client of HTTP/1 has sent a body, or part of one, and leaves, its request
// gives its turn back and is not forwarded.
func TestLeaversWithBodies(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		b := harness.StartBackend(t, func(_ *harness.Backend, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
		s, versions := harness.StartEveryVersion(t, "", ghostSite(store), b.Variable())
		client := harness.NewClient(t, "")
		for _, zone := range []string{"queue", "patient"} {
			if a := s.Get(client, "/"+zone); a.Status != http.StatusOK {
				t.Fatalf("%s: status %d", zone, a.Status)
			}
		}
		abandoned := 0
		for _, dial := range []func() (net.Conn, error){
			func() (net.Conn, error) { return net.Dial("tcp", s.Address) },
			func() (net.Conn, error) {
				at, err := url.Parse(versions[1].URL)
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
					s.AwaitWaiting(len(waiting))
				}
				for len(waiting) > 0 { // the last one first, because its turn is the last
					last := len(waiting) - 1
					waiting[last].Close()
					waiting = waiting[:last]
					s.AwaitWaiting(len(waiting))
				}
				if zone == "queue" {
					s.AwaitLeft(zone, 99)
				}
			}
			abandoned += 12
			for _, zone := range []string{"queue", "patient"} {
				want := fmt.Sprintf(`decisions_total{outcome="abandoned",zone="%s"} %d`, zone, abandoned)
				patient.Until(t, want, func() bool { metrics, _ := s.Scrape(); return strings.Contains(metrics, want) })
			}
		}
		if n := len(b.Came()); n != 2 {
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
	b := harness.StartBackend(t, func(_ *harness.Backend, w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Sum", r.Trailer.Get("X-Sum"))
		_, _ = w.Write(body)
	})
	s, versions := harness.StartEveryVersion(t, "", ghostSite(harness.Memory), b.Variable())
	client := harness.NewClient(t, "")
	if a := s.Get(client, "/moving"); a.Status != http.StatusOK {
		t.Fatalf("status %d", a.Status)
	}
	for _, to := range versions {
		for _, body := range bodies {
			r, err := http.NewRequest(http.MethodPost, to.URL+"/moving", io.MultiReader(bytes.NewReader(body))) // chunked
			if err != nil {
				t.Fatal(err)
			}
			r.Trailer = http.Header{"X-Sum": {"42"}}
			response, err := to.Client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(response.Body)
			response.Body.Close()
			sum := response.Header.Get("X-Sum")
			if err != nil || !bytes.Equal(got, body) || sum != "42" && to.Major < 3 { // this client of HTTP/3 sends no trailers
				t.Errorf("HTTP/%d: of %d bytes %d came, trailer %q, %v", to.Major, len(body), len(got), sum, err)
			}
		}
	}
	conn, err := net.Dial("tcp", s.Address)
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
	if s.Waiting() != 0 {
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

// echoing takes over the connections of requests that ask for an upgrade, and sends back what it
// reads. Other requests are held.
func echoing(b *harness.Backend, w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		harness.AnswerAsAsked(b, w, r)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	_, _ = io.Copy(conn, buffered)
}

// upgraded is an upgrade that must succeed.
func upgraded(s *harness.Server, t *testing.T) net.Conn {
	t.Helper()
	conn, status := s.Upgrade(t)
	if status != http.StatusSwitchingProtocols {
		t.Fatalf("no upgrade: status %d", status)
	}
	return conn
}

// TestExitGivesSlotsBack: a Caddy that ends in good order has given back all slots, also those of
// upgraded connections and of requests that grace_period has cut. Leases are so long that no slot
// comes back by itself. A reload takes no slot away from a connection that goes on, and a store
// that no config names any more is not forgotten. Caddy runs without the race detector, because
// stream_close_delay of reverse_proxy has a race of its own while Caddy ends.
func TestExitGivesSlotsBack(t *testing.T) {
	t.Parallel()
	upstream := harness.StartBackend(t, echoing)
	server := redistest.Start(t)
	config := func(prefix, zone string) string {
		return harness.Caddyfile("grace_period 100ms", `
			rate_limit {
				zone `+zone+` {
					algorithm concurrency
					events 3
					lease 10m
				}
				store redis {
					address `+server.Addr()+`
					timeout 10s
					key_prefix `+prefix+`
				}
				on_store_error deny
			}
			reverse_proxy {$UPSTREAM} {
				stream_close_delay 10m
			}`)
	}
	taken := func(prefix string) (n int64) {
		ctx := context.Background()
		keys, err := server.Admin().Keys(ctx, prefix+":*:slots:concurrency*").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			n += server.Admin().ZCount(ctx, key, "1", "+inf").Val() // the last one that is given back stays for a moment, as one that has ended
		}
		return n
	}
	for _, test := range []struct{ name, prefix, config, load string }{
		{"at once", "one", config("one", "slots"), ""},
		{"after a reload", "two", config("two", "slots"), config("two", "slots") + "\n# changed\n"},
		{"another store since", "three", config("three", "slots"), config("other", "slots")},
		{"no such zone any more", "four", config("four", "slots"), config("four", "others")},
	} {
		t.Run(test.name, func(t *testing.T) {
			prefix := test.prefix
			s := harness.StartSites(t, harness.CommandBinary(t), 1, test.config, upstream.Variable())
			upgraded(s, t)
			upgraded(s, t)
			held := s.Begin("/", "X-Gate", prefix)
			upstream.AwaitInside(t, 3)
			if n := taken(prefix); n != 3 {
				t.Fatalf("%d slots taken, want 3", n)
			}
			if test.load != "" {
				s.MustLoad(test.load)
				if n := taken(prefix); n != 3 {
					t.Fatalf("%d slots taken after a reload, want 3: the connections go on", n)
				}
			}
			if err := s.Process.Terminate(); err != nil {
				t.Fatal(err)
			}
			patient.Until(t, "Caddy to end", s.Process.Ended)
			if n := taken(prefix); n != 0 {
				t.Errorf("%d slots still taken when Caddy has ended", n)
			}
			held.Leave()
			upstream.Open(prefix)
			upstream.AwaitInside(t, 0)

			again := harness.StartSites(t, harness.CommandBinary(t), 1, test.config, upstream.Variable())
			for range 3 {
				upgraded(again, t)
			}
			if err := again.Process.Kill(); err != nil {
				t.Error(err)
			}
			upstream.AwaitInside(t, 0)
			server.Admin().FlushAll(context.Background())
		})
	}
}
