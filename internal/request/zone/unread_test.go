package zone_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// counting is a body that counts what is read of it.
type counting struct {
	io.Reader
	bytes int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes += n
	return n, err
}

// TestRefusedUnread: of a request that block matches, or whose network is banned, or that is exempt, nothing is read, whatever
// its body has. The bodies of all others are read.
func TestRefusedUnread(t *testing.T) {
	const (
		address = `"key": "{http.request.remote.host}", "overrides": true, `
		calls   = `"match": [{"vars": {"{http.rate_limit.json.method}": ["tools/call"]}}], `
		blocked = `"block": [{"remote_ip": {"ranges": ["203.0.113.0/24"]}}], `
		ofBody  = `"key": "{http.request.remote.host} {http.rate_limit.json.method}", `
	)
	body := `{"method":"tools/call","tokens":1,"x":"` + strings.Repeat("x", 100_000) + `"}`
	other := `{"method":"ping"}`
	for _, c := range []struct {
		name, zone, body string
		bans             bool // the network of the client
		status, read     int
	}{
		{"nothing refuses", ofBody, body, false, 200, len(body)},
		{"blocked", ofBody + blocked, body, false, 403, 0},
		{"blocked, by calls", address + calls + blocked, body, false, 403, 0},
		{"blocked, another call", address + calls + blocked, other, false, 403, 0},
		{"blocked, no JSON", ofBody + blocked, "x", false, 403, 0},
		{"exempt", ofBody + strings.Replace(blocked, "block", "exempt", 1), body, false, 200, 0},
		{"another path", strings.Replace(calls, "[{", `[{"path": ["/other"], `, 1), body, false, 200, 0},
		{"another path, or a call", strings.Replace(calls, "[{", `[{"path": ["/other"]}, {`, 1), body, false, 200, len(body)},
		{"this path, or a call", strings.Replace(calls, "[{", `[{"path": ["/mcp"]}, {`, 1), body, false, 200, 0},
		{"blocked, and exempt", ofBody + blocked + `"exempt": [{}], `, body, false, 403, 0},
		{"blocked in a dry run", ofBody + blocked + `"enforce": 0, `, body, false, 200, 0},
		{"another one is blocked", ofBody + strings.Replace(blocked, "203.0.113.0", "192.0.2.0", 1), body, false, 200, len(body)},
		{"banned, by calls", address + calls, body, true, 429, 0},
		{"banned, another call", address + calls, other, true, 429, 0},
		{"banned, in a plan", address + calls + `"plan": {"of": "{http.request.header.Plan}", "plans": {"a": {"max_events": 5, "window": "1h"}}, "default": "a"}, `, body, true, 429, 0},
		{"banned, in plans of the body", address + `"plan": {"of": "{http.rate_limit.json.method}", "plans": {"tools/call": {"max_events": 5, "window": "1h"}}, "default": "reject 403"}, `, body, true, 429, 0},
		{"banned, with a cost of the body", address + `"cost": "{http.rate_limit.json.tokens}", `, body, true, 429, 0},
		{"banned in a dry run", address + calls + `"enforce": 0, `, body, true, 200, 0},
		{"banned, and exempt", address + calls + strings.Replace(blocked, "block", "exempt", 1), body, true, 200, 0},
		{"not banned, with a cost of the body", address + `"cost": "{http.rate_limit.json.tokens} 1", `, body, false, 200, len(body)},
	} {
		kept := caddytest.KeepMemory(t, memorystore.Options{})
		h := caddytest.Load(t, `{`+kept.Option()+`"rate_limits": {"z": {`+c.zone+`"max_events": 100, "window": "1h"}}}`)
		send := func(from, text string) (status, read int) {
			sent := &counting{Reader: strings.NewReader(text)}
			r := httptest.NewRequest(http.MethodPost, "http://example.com/mcp", sent)
			r.ContentLength, r.RemoteAddr = int64(len(text)), from
			status = caddytest.Status(h, caddyhttp.PrepareRequest(r, caddy.NewReplacer(), httptest.NewRecorder(), new(caddyhttp.Server)))
			return status, sent.bytes
		}
		if status, _ := send("198.51.100.9:1", body); status != http.StatusOK {
			t.Fatalf("%s: another client gets %d", c.name, status)
		}
		if c.bans {
			rule := kept.Rule("z")
			banned := store.Override{Kind: store.KindBanned, For: time.Hour}
			of := store.Selector{Network: netip.MustParsePrefix("203.0.113.0/24")}
			if err := kept.Opened().SetRule(t.Context(), rule, of, banned); err != nil {
				t.Fatal(err)
			}
		}
		if status, read := send("203.0.113.7:1", c.body); status != c.status || read != c.read {
			t.Errorf("%s: status %d after %d bytes, want %d after %d", c.name, status, read, c.status, c.read)
		}
	}
}
