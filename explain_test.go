package caddyratelimit_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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

// one returns one of the values.
func one[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// randomRequest returns a request that some zone may count.
func randomRequest(r *rand.Rand) adminapi.Request {
	host := one(r, "awkward.test", "awkward.test", "awkward.test", "awkward.test", "awkward.test", "awkward.test", "awkward.test", "unknown.test")
	q := adminapi.Request{
		Method: one(r, "GET", "GET", "POST", "post"), From: fmt.Sprintf("127.0.0.%d", one(r, 1, 2, 3, 4, 65)),
		Header: []string{"Host: " + host},
	}
	path := one(r, "/plain", "/v1/plain", "/app/x", "/v1/app/y?tier=gold", "/APP/y", "/other", "/v1/other", "/v2/a", "/queue", "/calls", "/calls", "/calls", "/calls")
	if path == "/calls" {
		q.Method, q.Body = "POST", []byte(one(r, `{"params":{"cost":1}}`, `{"params":{"cost":2}}`, "{"))
		q.Header = append(q.Header, "Content-Type: application/json")
	}
	q.URL = "http://" + host + path
	for _, field := range []string{
		"X-Api-Key: " + one(r, "key-of-alice", "key-of-bob", "made-up", " key-of-alice "), "X-Seller: one", "X-User: " + one(r, "a", "b", "c", "d"),
		"X-User: " + one(r, "a", "b"), "X-Use: 60000", "X-Password: right", "Authorization: Basic YWxpY2U6aGljY3Vw", "X-Cost: " + one(r, "0", "2", "x", "-1"),
		"X-Limit: " + one(r, "3", "9", "y"), "Cookie: session=" + one(r, "s", "t", `"s"`), "X-Bad: 1", "X-Office: a-secret-that-is-long-enough",
		"X_User: a", "Connection: Upgrade", "Upgrade: websocket", "Accept: application/json",
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

// sendExplained sends the request to a server.
func sendExplained(t *testing.T, address string, q *adminapi.Request) *http.Response {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(q.From)}}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, target, _ := strings.Cut(strings.TrimPrefix(q.URL, "http://"), "/")
	header := append([]string{"Connection: close", fmt.Sprintf("Content-Length: %d", len(q.Body))}, q.Header...)
	text := q.Method + " /" + target + " HTTP/1.1\r\n" + strings.Join(header, "\r\n") + "\r\n\r\n" + string(q.Body)
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: q.Method})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	if _, err := io.Copy(io.Discard, conn); err != nil { // until the server has closed it, when the request is over
		t.Fatal(err)
	}
	return response
}

// keyless are the outcomes for which the store is not asked in every case, so that the key shows only in some.
var keyless = []string{"rejected", "exempt", "failed_open", "failed_closed", "not_charged"}

// foreseen returns the outcomes in zones that an explanation foresees, sorted.
func foreseen(x *adminapi.Explanation) (all []string) {
	for _, v := range x.Zones {
		if v.Outcome == "" {
			continue
		}
		key := ""
		if v.State != nil && !slices.Contains(keyless, v.Outcome) {
			key, _ = v.State.Bytes()
		}
		all = append(all, fmt.Sprintf("%s %s %q", v.Zone, v.Outcome, key))
	}
	slices.Sort(all)
	return all
}

// TestExplainAgrees: what explain says of a request is what then happens: the zones that count it, the
// key in each of them, the outcomes, the zone that refuses it, the status, and Retry-After. The requests are
// random, of some awkward sites, and of zones whose states change meanwhile. In between,
// explain changes nothing.
func TestExplainAgrees(t *testing.T) {
	address := caddytest.FreeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	states := newChanging(t, address)
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		states.upstream(r)
	}))
	defer upstream.Close()
	behind := strings.TrimPrefix(upstream.URL, "http://")
	caddytest.RunConfig(t, address, awkwardSites+strings.ReplaceAll(stateSites, "UPSTREAM", behind))
	defer states.release()
	decisions, err := feed.Subscribe(func(string, string, outcome.Outcome) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	defer decisions.Unsubscribe()
	decisions.Ask(math.MaxInt32)

	random := rand.New(rand.NewPCG(1, 0))
	outcomes := make(map[string]int)
	var slowest time.Duration
	for i := range deep.Steps(800, 20_000) {
		q := randomRequest(random)
		if random.IntN(8) == 0 {
			states.change(random)
			decisions.Take()
		}
		if random.IntN(2) == 0 {
			q = states.request(random)
		}
		asked := q
		host, _, _ := strings.Cut(strings.TrimPrefix(q.URL, "http://"), "/")
		asked.URL = strings.Replace(q.URL, host, host+":"+port, 1)
		began := time.Now()
		before := explain(t, asked)
		if all, _ := decisions.Take(); len(all) > 0 {
			t.Fatalf("to explain counts %d decisions", len(all))
		}
		got := sendExplained(t, address, &q)
		took := time.Since(began)
		var counted []string
		all, _ := decisions.Take()
		for _, d := range all {
			counted = append(counted, describeDecision(&d))
			outcomes[d.Outcome]++
		}
		slices.Sort(counted)
		want := foreseen(&before)
		slowest = max(slowest, took)
		if difference := differs(&before, got, took, slowest); difference != "" || !slices.Equal(counted, want) {
			text, _ := json.MarshalIndent(before, "", " ")
			t.Fatalf("request %d %+v: status %d, %v\n%s\n%s\nhappened: %q\nforeseen: %q", i, q, got.StatusCode, got.Header, text, difference, counted, want)
		}
	}
	for _, o := range []outcome.Outcome{
		outcome.Allowed, outcome.Limited, outcome.NotCharged, outcome.DryRun, outcome.Banned, outcome.Rejected, outcome.Exempt,
	} {
		if outcomes[outcome.Names[o]] == 0 {
			t.Errorf("no request was %s: %v", outcome.Names[o], outcomes)
		}
	}
	t.Logf("%v", outcomes)
}

// describeDecision describes a decision as foreseen does.
func describeDecision(d *adminapi.Decision) string {
	key, _ := d.Bytes()
	if slices.Contains(keyless, d.Outcome) || d.Outcome == "dry_run" && d.Decision == nil {
		key = ""
	}
	return fmt.Sprintf("%s %s %q", d.Zone, d.Outcome, key)
}

// differs says in what a response is not as explained, the time that both took aside. A refusal that the instance
// remembers ends later than explain says, by the time that its answer was on its way: at most that of the slowest request.
func differs(x *adminapi.Explanation, got *http.Response, took, slowest time.Duration) string {
	status, told := x.Status, x.RetryAfter
	byErrorRoute := slices.ContainsFunc(x.Zones, func(v adminapi.Visit) bool { return v.Zone == "errors" && v.Outcome == "limited" })
	for _, v := range x.Zones {
		if s := v.State; s != nil && s.Slots && s.Ban == nil && s.RetryAfter > 1 { // leases end later, but are renewed
			return fmt.Sprintf("zone %s tells to wait %v for a slot", v.Zone, s.RetryAfter)
		}
	}
	answered := got.StatusCode
	if answered == http.StatusTeapot && x.Status != 0 { // which is what the error route answers
		answered = status
	}
	refused := !x.Passes && x.Outcome != adminapi.Failed
	if refused && answered != status || x.Passes && answered == http.StatusTooManyRequests {
		return fmt.Sprintf("status %d, want %d", answered, status)
	}
	retryAfter, _ := strconv.ParseFloat(got.Header.Get("Retry-After"), 64)
	if most, least := math.Ceil(told+slowest.Seconds()), math.Ceil(max(0, told-took.Seconds())); retryAfter > most || retryAfter < least {
		return fmt.Sprintf("Retry-After %v, want from %v to %v", retryAfter, least, most)
	}
	zone, _, _ := strings.Cut(got.Header.Get("RateLimit"), ";")
	if name := strings.Trim(zone, `"`); refused && x.RetryAfter > 0 && zone != "" && !byErrorRoute && name != x.Zone {
		return fmt.Sprintf("zone %s, want %s", name, x.Zone)
	}
	return ""
}

// awkwardSites have rewrites, handlers that share a zone, bans, queues, error
// routes, and all options that look at single requests.
const awkwardSites = `
http://awkward.test {
	uri strip_prefix /v1
	vars tier {query.tier}
	handle_path /app/* {
		rate_limit {
			zone inner {
				key "{path} {vars.tier}"
				rate 16/500h
			}
			zone double {
				key {client_ip}
				rate 7/500h
			}
		}
		rate_limit {
			zone double {
				key {client_ip}
				rate 7/500h
			}
		}
		respond ok
	}
	handle /v2/* {
		rate_limit {
			zone v2 {
				key {client_ip}
				rate 1/500h
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
				rate 2/500h
			}
			zone plain {
				key "{header.X-User} {method}"
				missing_key reject 401
				block header X-Bad *
				exempt header X-Office a-secret-that-is-long-enough
				rate 1/500h
				ban 5h after 2 refusals in 4h
			}
			zone half {
				key {header.X-User}
				missing_key skip
				rate 2/500h
				enforce 50
			}
			zone priced {
				key {header.X-User}
				cost {header.X-Cost} 1
				events {header.X-Limit} 9
				window 500h
			}
			on_limit problem
		}
		respond ok
	}
	handle /calls {
		rate_limit {
			zone calls {
				key {client_ip}
				cost {http.rate_limit.json.params.cost} 1
				rate 3/500h
			}
			zone methods {
				key {method}
				missing_key reject 401
				block header X-Bad *
				rate 6/500h
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
				enforce 0
			}
			zone cookies {
				key {cookie.session}
				rate 5/500h
			}
		}
		error 418
	}
	handle_errors {
		rate_limit {
			zone errors {
				key {client_ip}
				rate 40/500h
			}
		}
		respond "{err.status_code}" 418
	}
}
`
