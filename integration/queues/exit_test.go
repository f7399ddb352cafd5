//go:build deep

package queues_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// echoing takes over the connections of requests that ask for an upgrade, and sends back what it
// reads. Other requests are held.
func echoing(b *harness.Backend, w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		harness.Holding(b, w, r)
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
			n += server.Slots(key)
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
			s := harness.StartBinary(t, harness.CommandBinary(t), test.config, upstream.Variable())
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
			select {
			case <-s.Process.Done():
			case <-time.After(patient.Patience):
				t.Fatal("Caddy does not end")
			}
			if n := taken(prefix); n != 0 {
				t.Errorf("%d slots still taken when Caddy has ended", n)
			}
			held.Leave()
			upstream.Open(prefix)
			upstream.AwaitInside(t, 0)

			again := harness.StartBinary(t, harness.CommandBinary(t), test.config, upstream.Variable())
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
