package caddyratelimit_test

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// visit is a request of some client.
type visit struct {
	path   string
	header []string // names and values in turn
	from   string   // the address of the client; empty for 127.0.0.1
}

// shares are how many requests of an example got each status.
type shares map[int]int

// send sends requests to a Caddy and counts their statuses.
func send(t *testing.T, address string, visits []visit) shares {
	t.Helper()
	clients := make(map[string]*http.Client)
	got := make(shares)
	for _, v := range visits {
		host := address
		if strings.HasPrefix(address, unixSocket) {
			host = "localhost"
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+strings.TrimPrefix(v.path, noPath), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if v.path == noPath {
			r.URL.Opaque = noPath
		}
		for i := 0; i < len(v.header); i += 2 {
			r.Header.Add(v.header[i], v.header[i+1])
		}
		client := clients[v.from]
		if client == nil {
			client = &http.Client{Transport: &http.Transport{DialContext: dialer(address, v.from)}}
			clients[v.from] = client
			defer client.CloseIdleConnections()
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		got[response.StatusCode]++
	}
	return got
}

// noPath is a target without a path.
const noPath = "x:"

// unixSocket is how the address of a socket begins.
const unixSocket = "unix/"

// dialer connects to a server from an address of this machine, or to its socket.
func dialer(address, from string) func(context.Context, string, string) (net.Conn, error) {
	if path, ok := strings.CutPrefix(address, unixSocket); ok {
		return func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	}
	return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext
}

// each repeats requests so often, with {n} replaced by a number that differs each time.
func each(n int, path string, header ...string) (visits []visit) {
	for i := range n {
		number := strconv.Itoa(i + 1)
		fields := make([]string, len(header))
		for j, text := range header {
			fields[j] = strings.ReplaceAll(text, "{n}", number)
		}
		visits = append(visits, visit{path: strings.ReplaceAll(path, "{n}", number), header: fields})
	}
	return visits
}

// byClients has requests come from so many clients in turn.
func byClients(n int, visits []visit) []visit {
	for i := range visits {
		visits[i].from = "127.0.1." + strconv.Itoa(1+i%n)
	}
	return visits
}

// blamed returns what doctor finds, each as check and fix, of those that are not ok.
func blamed(t *testing.T) (found []string) {
	t.Helper()
	var d struct {
		Findings []struct{ Level, Check, Found, Fix string }
	}
	caddytest.AdminInto(t, "doctor", &d)
	for _, f := range d.Findings {
		if f.Level == "ok" {
			continue
		}
		name := "unknown advice: " + f.Fix
		if a := advice.Of(f.Fix); a != nil {
			name = a.Name()
		}
		found = append(found, name)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// limited is a zone of three requests an hour, with more options.
func limited(options string) string {
	return "rate_limit {\nzone z {\nrate 3/1h\n" + options + "\n}\n}\n"
}

// warned returns what the limiter has warned of, a line each.
func warned(logs []observer.LoggedEntry) (text string) {
	for _, line := range logs {
		if line.Level >= zapcore.WarnLevel && strings.HasPrefix(line.LoggerName, "http.handlers.rate_limit") {
			text += line.Message + "\n"
		}
	}
	return text
}

// TestEveryPath: rate_limit /* limits all requests, with a path in their target or without one, which Caddy's matcher /* does
// not match.
func TestEveryPath(t *testing.T) {
	for matcher, matches := range map[string]bool{"": false, "/*": false, "*": false, "@all": false, "/a/*": true, "@posts": true} {
		config, _, err := caddytest.Adapt("http:// {\n@all path /*\n@posts {\nmethod POST\npath /*\n}\nrate_limit " + matcher +
			" {\nzone z {\nrate 1/1h\n}\n}\n}")
		if err != nil {
			t.Fatalf("%s: %v", matcher, err)
		}
		if got := strings.Contains(string(config), `"match":`); got != matches {
			t.Errorf("%s: %s", matcher, config)
		}
	}
}
