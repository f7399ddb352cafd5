package integration_test

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

// raw sends the lines of a request from an address, byte for byte, and returns the status, or 0 if there is no answer.
func raw(s *harness.Server, from string, lines ...string) int {
	s.T.Helper()
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0))}
	conn, err := dialer.Dial("tcp", s.Address)
	if err == nil {
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patient.Patience))
		_, err = io.WriteString(conn, strings.Join(append(lines, "Host: a.test", "Connection: close"), "\r\n")+"\r\n\r\n")
	}
	if err != nil {
		s.T.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// TestClaimsOfAnAddress: whatever a client sends, it counts as the address of its connection, or as the one that the trusted
// proxy in front of it has seen.
func TestClaimsOfAnAddress(t *testing.T) {
	s := harness.One(t, harness.Caddyfile("servers {\ntrusted_proxies static 127.0.0.2\ntrusted_proxies_strict\n}", `
		rate_limit {
			zone clients {
				key  {client_ip}
				rate 1/1h
			}
		}
		respond ok`))
	const seen = "X-Forwarded-For: 198.51.100.7"
	for _, c := range []struct {
		from, claim string
		want        int
	}{
		{"127.0.0.1", "X-A: b", 200},
		{"127.0.0.1", "X-Forwarded-For: 203.0.113.1", 429},
		{"127.0.0.1", "Forwarded: for=203.0.113.1", 429},
		{"127.0.0.1", "X-Real-IP: 203.0.113.1", 429},
		{"127.0.0.2", seen, 200},
		{"127.0.0.2", "X-Forwarded-For: 203.0.113.1\r\n" + seen, 429},
		{"127.0.0.2", "X-Forwarded-For: 203.0.113.1, 198.51.100.7, 127.0.0.2", 429},
		{"127.0.0.2", "X-Forwarded-For: ::ffff:198.51.100.7", 429},
		{"127.0.0.2", "X-Forwarded-For: 198.51.100.8", 200},
	} {
		if got := raw(s, c.from, "GET / HTTP/1.1", c.claim); got != c.want {
			t.Errorf("%+v: status %d", c, got)
		}
	}
}

// TestSpellingsOfOneClient: once a limit is used up, no spelling of the same request passes.
func TestSpellingsOfOneClient(t *testing.T) {
	for key, spellings := range map[string][]struct {
		target, field string
		want          int
	}{
		"{header.X-Api-Key}": {
			{"/", "X-Api-Key: s3", 200},
			{"/", "x-api-key:\t s3 ", 429},
			{"/", "X-Api-Key: s3\r\nX-Api-Key: s3", 429},
			{"/", "X-Api-Key: s3\r\nX-Api-Key: r1", 400},
			{"/", "X-Api-Key: s3\r\nX_Api_Key: s4", 429},
		},
		"{query.key}": {
			{"/?key=s3", "A: b", 200}, {"/?k%65y=%733", "A: b", 429}, {"/?key=s3&key=r1", "A: b", 400}, {"/?key=r4&a;key=s3", "A: b", 400},
		},
		"{cookie.s}": {
			{"/", "Cookie: s=s3", 200}, {"/", `Cookie: a=b;s="s3"`, 429}, {"/", "Cookie: s=r1; s=s3", 400}, {"/", "Cookie: S=r3; s=s3", 400},
		},
		"{path}": {
			{"/login", "A: b", 200}, {"/LOGIN", "A: b", 429}, {"//a/../login", "A: b", 429}, {"/log%69n?x", "A: b", 429}, {"http://a.test/LOGIN", "A: b", 429},
		},
	} {
		t.Run(key, func(t *testing.T) {
			s := harness.One(t, harness.Caddyfile("", "rate_limit {\nzone one {\nkey "+key+"\nrate 1/1h\n}\n}\nrespond ok"))
			for _, q := range spellings {
				if got := raw(s, "127.0.0.1", "GET "+q.target+" HTTP/1.1", q.field); got != q.want {
					t.Errorf("%+v: status %d", q, got)
				}
			}
		})
	}
}

// TestOperatorsAndAFleet: a key that hammers one Caddy is banned from all, until an operator ends it by the admin API of any.
// Overrides hold everywhere too.
func TestOperatorsAndAFleet(t *testing.T) {
	fleet := harness.Three(t, harness.Caddyfile("", harness.Limited("clients", `
		key       {header.User}
		algorithm token_bucket 5/1h
		overrides
		ban       1h after 3 refusals in 10m`, harness.SharedStore(t), "respond ok")))
	client := harness.NewClient(t, "")
	status := func(user string) (all [3]int) {
		for i, s := range fleet {
			all[i] = s.Get(client, "/clients", "User", user).Status
		}
		return all
	}
	const key = "/rate_limit/zones/clients/key"
	fleet[0].Admitted(client, 8, "/clients", "User", "noisy")
	if a := fleet[2].Get(client, "/clients", "User", "noisy"); harness.RetryAfter(t, a).Minutes() < 50 {
		t.Errorf("elsewhere: %d, %v", a.Status, a.Header)
	}
	fleet[1].Must(http.MethodDelete, key+"?key=noisy", "")
	for _, step := range []struct {
		method, path, body, user string
		want                     int
	}{
		{http.MethodGet, key + "?key=noisy", "", "noisy", 200},
		{http.MethodPut, key + "/ban?key=quiet", `{"for": "1h"}`, "quiet", 429},
		{http.MethodDelete, key + "/ban?key=quiet", "", "quiet", 200},
		{http.MethodPut, key + "/override?key=friend", `{"limit": "exempt"}`, "friend", 200},
		{http.MethodPut, key + "/override?key=less", `{"limit": "0/1h"}`, "less", 429},
	} {
		fleet[1].Must(step.method, step.path, step.body)
		patient.UntilEqual(t, step.path, func() [3]int { return status(step.user) }, [3]int{step.want, step.want, step.want})
	}
	for range 5 {
		if got := status("friend"); got != [3]int{200, 200, 200} {
			t.Errorf("an exempt key: %v", got)
		}
	}
}
