//go:build deep

// Package keys_test tests that each client has a key of its own, however it spells its requests, and that bans hold for a key.
package keys_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

func TestMain(m *testing.M) { harness.Main(m) }

// The addresses of the test's connections.
const (
	stranger = "127.0.0.1"
	proxy    = "127.0.0.2" // in trusted_proxies
)

// sendFrom sends bytes from an address, and returns the status of the answer. It is 0 if Caddy closes the connection without one.
func sendFrom(s *harness.Server, from, bytes string) int {
	s.T.Helper()
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0))}
	conn, err := dialer.Dial("tcp", s.Address)
	if err != nil {
		s.T.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patient.Patience)); err != nil {
		s.T.Fatal(err)
	}
	if _, err := io.WriteString(conn, bytes); err != nil {
		return 0
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// request is one with these header lines.
func request(fields ...string) string {
	return strings.Join(append([]string{"GET / HTTP/1.1", "Host: a.test", "Connection: close"}, fields...), "\r\n") + "\r\n\r\n"
}

// claims are what a client may send to be taken for another one: lines of its header.
func claims() (all [][]string) {
	for _, name := range []string{
		"X-Forwarded-For", "x-forwarded-for", "X-FORWARDED-FOR", "X_Forwarded_For", "X-Forwarded-For ", "X-Real-IP", "X-Client-IP", "Client-IP",
		"True-Client-IP", "CF-Connecting-IP", "Fastly-Client-IP", "X-Cluster-Client-IP", "X-Forwarded", "Forwarded-For", "X-Original-Forwarded-For",
		"X-Remote-Addr", "X-ProxyUser-Ip", "Via",
	} {
		all = append(all, []string{name + ": 203.0.113.1"})
	}
	for _, value := range []string{
		"", ",", " , ,", "unknown", "_hidden", "-", "localhost", "127.0.0.2", "127.0.0.2, 203.0.113.1", "203.0.113.1, 127.0.0.2", "::1", "::ffff:203.0.113.1",
		"[2001:db8::1]:443", "2001:db8::1%eth0", "203.0.113.1:1234", "203.0.113.1;", `"203.0.113.1"`, "203.0.113.1\t,\t203.0.113.2", "0x7f000002", "2130706434",
		"127.2", "203.0.113.001", "203.0.113.1/32", "http://203.0.113.1", "203.0.113.1 203.0.113.2", "\xff\xfe", strings.Repeat("203.0.113.1, ", 300) + "203.0.113.1",
	} {
		all = append(all, []string{"X-Forwarded-For: " + value})
	}
	return append(all,
		[]string{"X-Forwarded-For: 203.0.113.1", "X-Forwarded-For: 203.0.113.2"},
		[]string{"X-Forwarded-For:", " 203.0.113.1"}, // a folded line
		[]string{"Forwarded: for=203.0.113.1"},
		[]string{`Forwarded: for="[2001:db8::1]:443";proto=https, for=203.0.113.1`},
		[]string{"Connection: X-Forwarded-For", "X-Forwarded-For: 203.0.113.1"},
		[]string{"X-Forwarded-For: 203.0.113.1", "Forwarded: for=203.0.113.2", "X-Real-IP: 203.0.113.3"},
	)
}

// TestClaimsOfAnAddress: whatever a client sends, it counts as the address that its connection has, or that the trusted proxy in front
// of it has seen.
func TestClaimsOfAnAddress(t *testing.T) {
	t.Parallel()
	b := harness.StartBackend(t, func(_ *harness.Backend, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	s := harness.StartCaddy(t, harness.Caddyfile("servers {\ntrusted_proxies static "+proxy+"\ntrusted_proxies_strict\n}", `
		rate_limit {
			zone clients {
				key {client_ip}
				rate 2/1h
			}
		}
		reverse_proxy {$UPSTREAM}`), b.Variable())
	tried := 0
	// spent uses up the limit of a client, whose other ways to send a request then all are refused, or are no requests to Caddy.
	spent := func(from, plain string, others ...string) {
		t.Helper()
		before := len(b.Came())
		for i, want := range []int{200, 200, 429} {
			if got := sendFrom(s, from, plain); got != want {
				t.Fatalf("from %s, request %d of %q: status %d, want %d", from, i+1, plain, got, want)
			}
		}
		for _, other := range others {
			if got := sendFrom(s, from, other); got != 429 && got != 400 && got != 0 {
				t.Errorf("from %s, %.300q: status %d, want 429, 400 or no answer", from, other, got)
			}
		}
		tried += len(others)
		if n := len(b.Came()) - before; n != 2 {
			t.Errorf("from %s: %d requests reached the upstream, want 2", from, n)
		}
	}

	const client = "198.51.100.7"
	var direct, forwarded []string
	seen := "X-Forwarded-For: " + client
	for _, claim := range claims() {
		direct = append(direct, request(claim...))
		forwarded = append(forwarded, request(append(claim, seen)...)) // a proxy that adds a line, or appends to one
		if first, value, _ := strings.Cut(claim[0], ": "); len(claim) == 1 && strings.EqualFold(first, "X-Forwarded-For") {
			forwarded = append(forwarded, request(first+": "+value+", "+client))
		}
	}
	for _, value := range []string{client + ":5000", "::ffff:" + client, " " + client + "\t", client + ", " + proxy, client + "," + proxy + "," + proxy} {
		forwarded = append(forwarded, request("X-Forwarded-For: 203.0.113.1, "+value))
	}
	spent(stranger, request(), direct...)
	spent(proxy, request(seen), forwarded...)
	if tried < 100 {
		t.Errorf("%d claims were tried, want more than 100", tried)
	}
	s.Sound(t)
}
