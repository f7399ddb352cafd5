package keys_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestUnknownPlaceholder: names that are common on the web but unknown to Caddy would put all
// clients into one bucket. Loading them fails, and the error says what is right.
func TestUnknownPlaceholder(t *testing.T) {
	t.Parallel()
	config := func(key string) string {
		return harness.Caddyfile("", "rate_limit {\nzone clients {\nkey "+key+"\nevents 1\nwindow 1h\n}\n}\nrespond ok")
	}
	s := harness.StartCaddy(t, config("{client_ip}"))
	client := harness.NewClient(t, "")
	if a := s.Get(client, "/"); a.Status != http.StatusOK {
		t.Fatalf("status %d", a.Status)
	}
	for key, right := range map[string]string{
		"{http.request.remote_ip}":            "{http.vars.client_ip}",
		"{http.request.client_ip}":            "{http.vars.client_ip}",
		"user-{http.request.remote_ip}":       "{http.vars.client_ip}",
		"{http.request.remote.hots}":          "{http.request.remote.host}",
		"{http.request.headers.X-Api-Key}":    "{http.request.header.X-Api-Key}",
		"{http.request.tls.client.finerpint}": "{http.request.tls.client.fingerprint}",
	} {
		err := s.Load(config(key))
		if err == nil || !strings.Contains(err.Error(), "unknown placeholder") || !strings.Contains(err.Error(), right) {
			t.Errorf("key %s: error %v, want one that names %s", key, err, right)
		}
	}
	// The config that ran before still runs, with its counts.
	if a := s.Get(client, "/"); a.Status != http.StatusTooManyRequests {
		t.Errorf("status %d after the loads that failed, want 429", a.Status)
	}
}

// TestMissingKeyAndImitation: no value of a key can reach the bucket of another zone, of requests
// without the key, or of another pair of values.
func TestMissingKeyAndImitation(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		zone := func(name, key string) string {
			return `
				handle /` + name + ` {
					rate_limit {
						zone ` + name + ` {
							` + key + `
							events 2
							window 1h
						}
						` + store + `
					}
					respond {client_ip}
				}`
		}
		s := harness.StartCaddy(t, harness.Caddyfile("servers {\ntrusted_proxies static 127.0.0.0/8\n}",
			zone("by_header", "key {header.X-Api-Key}")+
				zone("by_ip", "key {client_ip}")+
				zone("for_all", "")+
				zone("pair", "key {header.A}-{header.B}")))
		client := harness.NewClient(t, "")
		// twice uses a bucket up, and fails the test if somebody else has used it.
		twice := func(what, path string, header ...string) {
			t.Helper()
			if got := s.Admitted(client, 3, path, header...); got != 2 {
				t.Errorf("%s: %d of 3 admitted, want 2", what, got)
			}
		}

		twice("no key", "/by_header")
		if got := s.Admitted(client, 1, "/by_header", "X-Api-Key", ""); got != 0 {
			t.Error("the empty key has a bucket apart from that of no key")
		}
		for _, imitation := range []string{
			"203.0.113.7", "*", "%2A", "#", "-", "\"\"", "by_ip", "203.0.113.7}:by_ip:sliding_window_log.4:1h",
			"{header.X-Api-Key}", "{client_ip}", "a b", "a  b", "a%20b", "a+b", "\u00e4", "a\u0308", "%C3%A4", "\xe4", "A", "a",
		} {
			twice("header "+imitation, "/by_header", "X-Api-Key", imitation)
		}
		twice("address", "/by_ip", "X-Forwarded-For", "203.0.113.7")
		twice("another address", "/by_ip", "X-Forwarded-For", "203.0.113.8")
		if got := s.Admitted(client, 1, "/by_ip", "X-Forwarded-For", "::ffff:203.0.113.7"); got != 0 {
			t.Error("an IPv4 address in IPv6 clothes has a bucket of its own")
		}
		twice("address without proxy", "/by_ip")
		twice("zone without key", "/for_all")

		for _, pair := range [][2]string{
			{"x-y", "z"}, {"x", "y-z"}, {"", "x-y-z"}, {"x-y-z", ""}, {"1:x-y", "z"}, {"x-1:y", "z"}, {"x", "1:y-z"},
		} {
			twice("pair "+pair[0]+" and "+pair[1], "/pair", "A", pair[0], "B", pair[1])
		}
		s.Sound(t)
	})
}

// TestLongKeys: a key of 64 kilobytes is a key like any other, to its last byte. Caddy refuses
// much longer ones.
func TestLongKeys(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		s := harness.StartCaddy(t, harness.Caddyfile("servers {\nmax_header_size 1MiB\n}", `
			rate_limit {
				zone keys {
					key {header.X-Api-Key}
					events 2
					window 1h
				}
				`+store+`
			}
			respond ok`))
		client := harness.NewClient(t, "")
		long := strings.Repeat("k", 64<<10)
		for _, key := range []string{long + "a", long + "b", long, long[1:], "k"} {
			if got := s.Admitted(client, 3, "/", "X-Api-Key", key); got != 2 {
				t.Errorf("key of %d bytes that ends in %q: %d of 3 admitted, want 2", len(key), key[len(key)-1:], got)
			}
		}
		// Caddy may have closed the connection before all of it was sent.
		a, err := harness.Send(client, s.URL("/"), "X-Api-Key", strings.Repeat("k", 2<<20))
		if err == nil && a.Status != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("a key of two megabytes: status %d, want 431", a.Status)
		}
		s.Sound(t)
	})
}
