package caddyratelimit_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// explain asks what would happen to a request.
func explain(t *testing.T, r adminapi.Request) (x adminapi.Explanation) {
	t.Helper()
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(caddytest.Admin(t, "POST", "explain", string(body))), &x); err != nil {
		t.Fatal(err)
	}
	return x
}

// globalOptions matches the block of global options of a recipe.
var globalOptions = regexp.MustCompile(`(?ms)\A\{\n.*?^\}\n`)

// recipeSites returns the sites of the recipes as parts of one config in which nothing expires
// during a test. Each recipe has hosts of its own.
func recipeSites(t *testing.T, upstream string) (config string, hosts []string) {
	t.Helper()
	endless := regexp.MustCompile(`(window +)\d+[ms]\b|(\d/)1[ms]\b`)
	site := regexp.MustCompile(`(?m)^([a-z.]*example\.com) \{$`)
	for i, match := range regexp.MustCompile("(?ms)^## ([^\n]*)\n(?:[^#`].*?)?^```caddyfile\n(.*?)^```$").FindAllStringSubmatch(recipes(t), -1) {
		text := globalOptions.ReplaceAllString(match[2], "")
		text = strings.Replace(text, "*.example.com {", fmt.Sprintf("http://*.r%d.example.com {", i), 1)
		for _, host := range site.FindAllStringSubmatch(text, -1) {
			hosts = append(hosts, fmt.Sprintf("r%d.%s", i, host[1]))
		}
		config += site.ReplaceAllString(text, fmt.Sprintf("http://r%d.$1 {", i))
	}
	config = endless.ReplaceAllString(config, "${1}${2}500h")
	for _, pair := range [][2]string{
		{"window      day", "window month"},
		{"localhost:9000", upstream},
		{"localhost:9001", upstream},
		{"max_wait  5s", "max_wait  1ms"}, // Retry-After is never less than the t of RateLimit, which does not know of it
		{"198.51.100.0/24", "127.0.0.64/26"},
		{"192.0.2.0/24", "127.0.0.3"},
		{"203.0.113.7", "127.0.0.4"},
	} {
		if !strings.Contains(config, pair[0]) {
			t.Fatalf("no recipe says %q", pair[0])
		}
		config = strings.ReplaceAll(config, pair[0], pair[1])
	}
	return config, hosts
}

// awkwardSites are what the recipes lack: rewrites, handlers that share a zone, bans, queues, error
// routes, and all options that look at single requests.
const awkwardSites = `
http://awkward.test {
	uri strip_prefix /v1
	vars tier {query.tier}
	handle_path /app/* {
		rate_limit {
			zone inner {
				key "{path} {vars.tier}"
				events 16
				window 500h
			}
			zone double {
				key {client_ip}
				events 7
				window 500h
			}
		}
		rate_limit {
			zone double {
				key {client_ip}
				events 7
				window 500h
			}
		}
		respond ok
	}
	handle /v2/* {
		rate_limit {
			zone v2 {
				key {client_ip}
				events 1
				window 500h
				ban 5h after 2 refusals in 4h
			}
		}
	}
	handle /queue {
		rate_limit {
			zone turns {
				key {header.X-User}
				algorithm leaky_bucket 1/20h
				mode queue
				burst 3
				max_wait 1m
			}
		}
	}
	handle /plain {
		rate_limit {
			zone aliases {
				key {header.X_User}
				missing_key skip
				events 2
				window 500h
			}
			zone plain {
				key "{header.X-User} {method}"
				missing_key reject 401
				block header X-Bad *
				exempt header X-Office a-secret-that-is-long-enough
				events 1
				window 500h
				ban 5h after 2 refusals in 4h
			}
			zone half {
				key {header.X-User}
				missing_key skip
				events 2
				window 500h
				enforce 50
			}
			zone priced {
				key {header.X-User}
				cost {header.X-Cost} 1
				events {header.X-Limit} 9
				window 500h
				invalid_limit 402
			}
			on_limit problem
		}
		respond ok
	}
	handle {
		rate_limit {
			zone queued {
				key {header.X-User}
				algorithm leaky_bucket 1/500h
				mode queue
				burst 2
				dry_run
			}
			zone cookies {
				key {cookie.session}
				events 5
				window 500h
			}
		}
		error 418
	}
	handle_errors {
		rate_limit {
			zone errors {
				key {client_ip}
				events 40
				window 500h
			}
		}
		respond "{err.status_code}" 418
	}
}
`

// one returns one of the values.
func one[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// randomRequest returns a request that some zone may count.
func randomRequest(r *rand.Rand, hosts []string) adminapi.Request {
	host := one(r, append(hosts, "awkward.test", "awkward.test", "awkward.test", "unknown.test")...)
	q := adminapi.Request{
		Method: one(r, "GET", "GET", "POST", "post"), From: fmt.Sprintf("127.0.0.%d", one(r, 1, 2, 3, 4, 65)),
		Header: []string{"Host: " + host},
	}
	path := one(r, "/", "/geocode", "/geocode/batch", "/api/item/17/comment", "/API//item/17/comment", "/login", "/token/a", "/leaky/a",
		"/sliding/a", "/sliding/%61", "/concurrent/a", "/pay/now", "/browse")
	if host == "awkward.test" {
		path = one(r, "/plain", "/v1/plain", "/app/x", "/v1/app/y?tier=gold", "/APP/y", "/other", "/v1/other", "/v2/a", "/queue")
	}
	q.URL = "http://" + host + path
	for _, field := range []string{
		"X-Api-Key: " + one(r, "key-of-alice", "key-of-bob", "made-up", " key-of-alice "), "X-Seller: one", "X-User: " + one(r, "a", "b", "c", "d"),
		"X-User: " + one(r, "a", "b"), "X-Use: 60000", "X-Password: right", "Authorization: Basic YWxpY2U6aGljY3Vw", "X-Cost: " + one(r, "0", "2", "x", "-1"),
		"X-Limit: " + one(r, "3", "9", "y"), "Cookie: session=" + one(r, "s", "t", `"s"`), "X-Bad: 1", "X-Office: a-secret-that-is-long-enough",
		"X_User: a", "Connection: Upgrade", "Upgrade: websocket",
	} {
		often := 5
		if strings.HasPrefix(field, "X-Api-Key") || strings.HasPrefix(field, "X-User") {
			often = 2
		}
		if r.IntN(often) == 0 {
			q.Header = append(q.Header, field)
		}
	}
	return q
}

// send sends the request to a server.
func sendExplained(t *testing.T, address string, q *adminapi.Request) (status, retryAfter int) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(q.From)}}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, target, _ := strings.Cut(strings.TrimPrefix(q.URL, "http://"), "/")
	text := q.Method + " /" + target + " HTTP/1.1\r\n" + strings.Join(q.Header, "\r\n") + "\r\n\r\n"
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: q.Method})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	retryAfter, _ = strconv.Atoi(response.Header.Get("Retry-After"))
	return response.StatusCode, retryAfter
}

// foreseen returns the outcomes in zones that an explanation foresees, sorted.
func foreseen(x *adminapi.Explanation) (all []string) {
	for _, v := range x.Zones {
		if v.Outcome == "" {
			continue
		}
		key := ""
		if v.State != nil {
			key, _ = v.State.Bytes()
		}
		for _, p := range v.Placeholders {
			if !strings.Contains(key, p.Value) && v.State != nil {
				all = append(all, fmt.Sprintf("the key %q has no %q", key, p.Value))
			}
		}
		all = append(all, fmt.Sprintf("%s %s %q", v.Zone, v.Outcome, key))
	}
	slices.Sort(all)
	return all
}

// TestExplainAgrees: what explain says of a request is what then happens: the zones that count it, the
// key in each of them, the outcomes, the status, and the time until it passes again. The requests are
// random, and those of the recipes and of some awkward sites. In between, explain changes nothing.
func TestExplainAgrees(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if used := r.Header.Get("X-Use"); used != "" {
			w.Header().Set("X-Tokens-Used", used)
		}
		if r.URL.Path == "/login" && r.Header.Get("X-Password") != "right" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer upstream.Close()
	address := caddytest.FreeAddress(t)
	config, hosts := recipeSites(t, strings.TrimPrefix(upstream.URL, "http://"))
	caddytest.RunConfig(t, address, config+awkwardSites)
	_, port, _ := net.SplitHostPort(address)
	decisions, err := feed.Subscribe(math.MaxInt32, func(string, string, outcome.Outcome) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	defer decisions.Unsubscribe()

	seed := uint64(1)
	random := rand.New(rand.NewPCG(seed, 0))
	outcomes := make(map[string]int)
	for i := range deep.Steps(1000, 20_000) {
		q := randomRequest(random, hosts)
		asked := q
		host, _, _ := strings.Cut(strings.TrimPrefix(q.URL, "http://"), "/")
		asked.URL = strings.Replace(q.URL, host, host+":"+port, 1)
		before := explain(t, asked)
		if n := len(decisions.Decisions); n > 0 {
			t.Fatalf("to explain counts %d decisions", n)
		}
		status, retryAfter := sendExplained(t, address, &q)
		var got []string
		for len(decisions.Decisions) > 0 {
			d := <-decisions.Decisions
			key, _ := d.Bytes()
			if !slices.Contains([]string{"rejected", "exempt"}, d.Outcome) && !(d.Outcome == "dry_run" && d.Decision == nil) && !(d.Outcome == "not_charged" && d.Decision == nil) {
				got = append(got, fmt.Sprintf("%s %s %q", d.Zone, d.Outcome, key))
			} else {
				got = append(got, fmt.Sprintf("%s %s %q", d.Zone, d.Outcome, ""))
			}
			outcomes[d.Outcome]++
		}
		slices.Sort(got)
		describe := func() string {
			text, _ := json.MarshalIndent(before, "", " ")
			return fmt.Sprintf("request %d %+v: status %d\n%s", i, q, status, text)
		}
		if want := foreseen(&before); !slices.Equal(got, want) {
			t.Fatalf("%s\nhappened: %q\nforeseen: %q", describe(), got, want)
		}
		if refused := before.Zone != ""; refused && !(before.Status == status || status == 418) || before.Passes && status == http.StatusTooManyRequests {
			t.Fatalf("%s", describe())
		}
		if retryAfter == 0 || before.RetryAfter == 0 {
			continue
		}
		if slices.ContainsFunc(before.Zones, func(v adminapi.Visit) bool { return v.Zone == "errors" && v.Outcome == "limited" }) {
			continue // the answer is that of the error route, which also refuses
		}
		after := explain(t, asked)
		if most, least := math.Ceil(before.RetryAfter), math.Ceil(after.RetryAfter); float64(retryAfter) > most || float64(retryAfter) < least {
			t.Fatalf("%s\nRetry-After: %d, want from %v to %v", describe(), retryAfter, least, most)
		}
	}
	for _, o := range []outcome.Outcome{
		outcome.Allowed, outcome.Limited, outcome.NotCharged, outcome.DryRun, outcome.Banned, outcome.Rejected, outcome.Exempt,
	} {
		if outcomes[outcome.Names[o]] == 0 {
			t.Errorf("no request was %s: %v", outcome.Names[o], outcomes)
		}
	}
}
