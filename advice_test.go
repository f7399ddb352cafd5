package caddyratelimit_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
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
	if err := json.Unmarshal([]byte(caddytest.Admin(t, http.MethodGet, "doctor", "")), &d); err != nil {
		t.Fatal(err)
	}
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

// advised is a set-up with something wrong, and what follows the advice.
type advised struct {
	global, site string // of the set-up
	then, fixed  string // of the one that follows the advice; the global options and the site
	mend         func() // follows the advice outside of the config, before that
	visits       []visit
	later        []visit // after that, if others follow from the advice
	socket       bool    // the server listens on a Unix socket
	told         string  // who tells first: load, log or doctor; empty if this does not matter
	advice       string  // all that is given, sorted, separated by spaces
	before       shares  // nil if it is only known that fewer are served than after
	after        shares
}

// apply runs the set-up, and then the one that follows the advice, with the same requests. What is wrong is
// found, by the advice that is expected, and nothing is found in the end.
func (c *advised) apply(t *testing.T) {
	run := func(global, site string, visits []visit) (got shares, load, log string) {
		address := caddytest.FreeAddress(t) // a new one, because the server before closes its connections
		if c.socket {
			address = unixSocket + filepath.Join(t.TempDir(), "caddy")
		}
		logs := caddytest.RunConfig(t, address, "{\n"+global+"}\nhttp:// {\n"+site+"\n}\n")
		load = warned(logs.TakeAll())
		return send(t, address, visits), load, warned(logs.TakeAll())
	}
	before, load, log := run(c.global, c.site, c.visits)
	patient.UntilEqual(t, "before", func() string { return strings.Join(blamed(t), " ") }, c.advice)
	told := "doctor"
	if load != "" {
		told = "load"
	} else if log != "" {
		told = "log"
	}
	if c.told != "" && told != c.told {
		t.Errorf("%s tells first, want %s", told, c.told)
	}
	if c.mend != nil {
		c.mend()
	}
	caddytest.RunConfig(t, caddytest.FreeAddress(t), "{\n}\nhttp:// {\nrespond ok\n}\n") // which forgets the counts
	visits := c.visits
	if c.later != nil {
		visits = c.later
	}
	after, load, log := run(c.then, c.fixed, visits)
	patient.UntilEqual(t, "after", func() string { return strings.Join(blamed(t), " ") }, "")
	if c.told != "" && load+log != "" {
		t.Errorf("after: %s%s", load, log)
	}
	if c.before == nil && before[200] >= after[200] || c.before != nil && !maps.Equal(before, c.before) || !maps.Equal(after, c.after) {
		t.Errorf("%v and then %v, want %v and %v", before, after, c.before, c.after)
	}
	t.Logf("%s | %s | %s | %v | %v", c.advice, t.Name(), told, before, after)
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

// zoneAdvice are the set-ups with something wrong in the config.
func zoneAdvice() map[string]advised {
	const hash = "$2a$04$gMwGv3u6Sws8g2LOHVt.V.Vo9ncjJS7Vxl63tuWoTaNAz8v28g9q." // of "secret", at the least cost
	login, people := "basic_auth {\n", each(20, "/")
	for i := range people {
		name := "user" + strconv.Itoa(i)
		login += name + " " + hash + "\n"
		people[i].header = []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":secret"))}
	}
	login += "}\n"
	proxied := "servers {\ntrusted_proxies static 127.0.0.0/8\ntrusted_proxies_strict\n}\n"
	return map[string]advised{
		"a key of the wrong name": {
			site: limited("key {cookie.sid}") + "respond ok", fixed: limited("key {cookie.session}") + "respond ok",
			visits: each(20, "/", "Cookie", "session={n}"),
			advice: "doctor/missing_key/nobody", before: shares{200: 3, 429: 17}, after: shares{200: 20},
		},
		"a key of the wrong name that is tried": {
			site: limited("key {cookie.sid}") + "respond ok", then: proxied, fixed: limited("key {client_ip}") + "respond ok",
			visits: each(20, "/", "Cookie", "session={n}", "X-Forwarded-For", "2001:db8:0:{n}::1"),
			advice: "doctor/missing_key/nobody", before: shares{200: 3, 429: 17}, after: shares{200: 20},
		},
		"a key of the wrong name that is rejected": {
			site: limited("key {cookie.sid}\nmissing_key reject") + "respond ok", fixed: limited("key {cookie.session}\nmissing_key reject") + "respond ok",
			visits: each(20, "/", "Cookie", "session={n}"),
			advice: "doctor/missing_key/nobody", before: shares{401: 20}, after: shares{200: 20},
		},
		"some clients without a key": {
			site: limited("key {cookie.sid}") + "respond ok", then: proxied,
			fixed:  "rate_limit {\nzone z {\nrate 3/1h\nkey {cookie.sid}\nmissing_key skip\n}\nzone addresses {\nrate 3/1h\nkey {client_ip}\n}\n}\nrespond ok",
			visits: append(each(20, "/", "Cookie", "sid={n}", "X-Forwarded-For", "2001:db8:0:{n}::1"), each(20, "/", "X-Forwarded-For", "2001:db8:1:{n}::1")...),
			advice: "doctor/missing_key", before: shares{200: 23, 429: 17}, after: shares{200: 40},
		},
		"a path that was stripped": {
			site:   "handle_path /api/* {\n" + limited("key {client_ip}\nmatch path /api/*") + "respond ok\n}",
			fixed:  "handle_path /api/* {\n" + limited("key {client_ip}\nmatch path /list") + "respond ok\n}",
			visits: each(20, "/api/list"),
			advice: "doctor/requests/moved", before: shares{200: 20}, after: shares{200: 3, 429: 17},
		},
		"a path that was rewritten": {
			site:   "rewrite /wp-login* /login\n" + limited("key {client_ip}\nmatch path /wp-login*") + "respond ok",
			fixed:  "route {\n" + limited("key {client_ip}\nmatch path /wp-login*") + "rewrite /wp-login* /login\nrespond ok\n}",
			visits: each(20, "/wp-login.php"),
			advice: "doctor/requests/moved", before: shares{200: 20}, after: shares{200: 3, 429: 17},
		},
		"a handler that answers before": {
			site: "route {\nrespond ok\n" + limited("key {client_ip}") + "}", fixed: "route {\n" + limited("key {client_ip}") + "respond ok\n}",
			visits: each(20, "/"),
			advice: "doctor/requests/behind", before: shares{200: 20}, after: shares{200: 3, 429: 17},
		},
		"a match that fits nothing": {
			site: limited("key {client_ip}\nmatch path /login") + "respond ok", fixed: limited("key {client_ip}\nmatch path /x/login") + "respond ok",
			visits: each(20, "/x/login"),
			advice: "doctor/requests", before: shares{200: 20}, after: shares{200: 3, 429: 17},
		},
		"a route that no request takes": {
			site: "handle /login {\n" + limited("key {client_ip}") + "}\nrespond ok", fixed: "handle /x/login {\n" + limited("key {client_ip}") + "}\nrespond ok",
			visits: each(20, "/x/login"),
			advice: "doctor/requests", before: shares{200: 20}, after: shares{200: 3, 429: 17},
		},
		"a key that a proxy writes": {
			site: limited("key {header.X-Forwarded-For}") + "respond ok", then: proxied, fixed: limited("key {client_ip}") + "respond ok",
			visits: append(each(30, "/", "X-Forwarded-For", "2001:db8:1:{n}::1"), each(20, "/", "X-Forwarded-For", "2001:db8:0:{n}::1, 192.0.2.7")...),
			advice: "load/key/forwarded", before: shares{200: 50}, after: shares{200: 33, 429: 17},
		},
		"a key of users who log in later": {
			site:   limited("key {http.auth.user.id}") + login + "respond ok",
			fixed:  "route {\n" + login + limited("key {http.auth.user.id}") + "respond ok\n}",
			visits: people,
			advice: "load/key/late", before: shares{200: 3, 429: 17}, after: shares{200: 20},
		},
	}
}

// TestAdviceIsGood: what is wrong is found, and the set-up that follows the advice does better with the same
// requests, and nothing is found in it. No advice is left out.
func TestAdviceIsGood(t *testing.T) {
	deep.InTurn(t)
	cases := zoneAdvice()
	maps.Copy(cases, limitAdvice())
	maps.Copy(cases, storeAdvice(t))
	maps.Copy(cases, wrongAdvice(t))
	maps.Copy(cases, proxyAdvice())
	applied := make(map[string]string)
	for by, all := range appliedElsewhere {
		for of := range strings.FieldsSeq(all) {
			applied[of] = by
		}
	}
	for name, c := range cases {
		for of := range strings.FieldsSeq(c.advice) {
			applied[of] = name
		}
		t.Run(name, c.apply)
	}
	for _, a := range advice.All() {
		if applied[a.Name()] == "" {
			t.Errorf("no set-up has the advice %s, so that nobody knows whether it is good", a.Name())
		}
	}
}
