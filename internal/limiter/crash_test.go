package limiter_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
)

// TestCrashingHandlers sends bursts of requests through handlers that share their limits, and
// crashes or reloads handlers while requests are under way. Requests end in every way. No zone ever
// admits more than its limit, and after each burst the quota that is left is exact: charges that a
// crash has kept from being given back stay until the window or the lease is over.
func TestCrashingHandlers(t *testing.T) {
	for _, where := range []string{"memory", "redis"} {
		t.Run(where, func(t *testing.T) {
			c := newCrowd(t, where)
			run := 0
			deep.Check(t, 20, 300, func(rt *rapid.T) int {
				run++
				c.rounds(rt, strconv.Itoa(run))
				return 1
			})
			c.allComesBack()
		})
	}
}

// The limits of the zones.
const (
	crowdFailures = 6
	crowdTokens   = 40
	crowdCost     = 3 // in tokens, charged before the response
	crowdSlots    = 5
	crowdAll      = 60
)

// crowd is two handlers that share limits. They have one store in memory, or each has its own
// store with the same Redis.
type crowd struct {
	*testing.T
	zones    string
	server   *redistest.Server // nil in memory
	handlers [2]caddytest.Handler
	kept     [2]*caddytest.Kept
	proxies  [2]*faultproxy.Proxy
	users    []string // of all runs

	kind string // chooses the zones of this run

	mu       sync.Mutex
	accounts map[string]*account
	failed   string
}

// account is what a key must have used of each zone.
type account struct {
	failures, tokens, all, slots int64

	// late are tokens that responses have added. They count when the burst is over, because other
	// requests may have been admitted before.
	late int64

	crashed int64 // slots that are not given back because of a crash
}

// newCrowd starts both handlers.
func newCrowd(t *testing.T, where string) *crowd {
	c := &crowd{T: t, accounts: make(map[string]*account)}
	if where == "redis" {
		c.server = redistest.Start(t)
	}
	var zones strings.Builder
	for i, algorithm := range caddytest.Refunding {
		fmt.Fprintf(&zones, `
			"failures %[1]s": {"match": [{"header": {"Kind": [%[1]q]}}], "key": "{http.request.header.User}", %[2]s, "max_events": %[3]d,
				"charge_on_response": {"status_code": [401]}},
			"tokens %[1]s": {"match": [{"header": {"Kind": [%[1]q]}}], "key": "{http.request.header.User}", %[4]s, "max_events": %[5]d,
				"cost": %[6]d, "cost_header": "X-Tokens"},`,
			algorithm, unhurried(algorithm), crowdFailures, unhurried(caddytest.Refunding[(i+2)%len(caddytest.Refunding)]), crowdTokens, crowdCost)
	}
	c.zones = fmt.Sprintf(`{%s
		"slots": {"key": "{http.request.header.User}", "algorithm": "concurrency", "max_events": %d, "lease": "10s"},
		"all": {"key": "{http.request.header.Run}", %s, "max_events": %d},
		"short": {"key": "{http.request.header.User}", "algorithm": "fixed_window", "align": "first_request",
			"max_events": 1000, "window": "1s", "charge_on_response": {"status_code": [599]}}
	}`, zones.String(), crowdSlots, unhurried("fixed_window"), crowdAll)
	if c.server == nil {
		inMemory := caddytest.KeepMemory(c, memorystore.Options{})
		c.kept = [2]*caddytest.Kept{inMemory, inMemory}
	}
	for i := range c.handlers {
		c.open(i)
	}
	return c
}

// unhurried returns an algorithm with a window so long that no quota comes back while the test runs.
func unhurried(algorithm string) string {
	window, align := "1000d", ""
	switch algorithm {
	case "token_bucket", "leaky_bucket":
		window = "20h" // a debt is at most what comes back in a day
	case "fixed_window":
		align = `, "align": "first_request"`
	}
	return fmt.Sprintf(`"algorithm": %q, "window": %q%s`, algorithm, window, align)
}

// open replaces a handler and its store. To Redis it is a new process.
func (c *crowd) open(i int) {
	if c.server != nil {
		c.proxies[i] = faultproxy.Start(c, c.server.Addr())
		c.kept[i] = caddytest.KeepRedis(c, redisstore.Options{Address: c.proxies[i].Addr(), Timeout: 10 * time.Second})
	}
	c.reload(i)
}

// reload replaces a handler by that of the next config.
func (c *crowd) reload(i int) {
	old := c.handlers[i]
	c.handlers[i] = caddytest.Load(c, `{`+c.kept[i].Option()+`"on_store_error": "deny", "log": "off", "rate_limits": `+c.zones+`}`)
	if old != nil {
		if err := old.Cleanup(); err != nil {
			c.Error(err)
		}
	}
}

// crash cuts a handler's store off forever, so that Redis receives neither what its requests give
// back nor the renewals of their leases.
func (c *crowd) crash(i int) {
	c.proxies[i].Inject(func(string) faultproxy.Fault { return faultproxy.CutBefore })
	old := c.kept[i]
	c.open(i)
	c.kept[i].CopyRules(old)
}

// crowdRequest is a request, and how it ends.
type crowdRequest struct {
	handler int
	user    string
	status  int
	cost    int64  // in the cost header; there is none if it is negative
	ending  string // of the response
	quick   bool   // it does not wait for the others
	lost    bool   // its handler crashes before it ends
}

var endings = []string{"written", "returned", "streamed", "hijacked", "panic", "panic after"}

func drawRequest(t *rapid.T, run string) crowdRequest {
	req := crowdRequest{
		handler: rapid.IntRange(0, 1).Draw(t, "handler"),
		user:    run + rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(t, "user"),
		status:  rapid.SampledFrom([]int{200, 401, 403}).Draw(t, "status"),
		cost:    rapid.Int64Range(-3, 25).Draw(t, "cost"),
		ending:  rapid.SampledFrom(endings).Draw(t, "ending"),
		quick:   rapid.IntRange(0, 3).Draw(t, "quick") == 0,
	}
	switch req.ending {
	case "hijacked":
		req.status = http.StatusSwitchingProtocols
	case "panic":
		req.status = http.StatusInternalServerError
	}
	return req
}

// rounds sends a few bursts. The keys of each run are new.
func (c *crowd) rounds(t *rapid.T, run string) {
	for _, user := range []string{run + "a", run + "b"} {
		c.users = append(c.users, user)
		c.accounts[user] = new(account)
	}
	c.accounts[run] = new(account) // of both users together
	c.kind = rapid.SampledFrom(caddytest.Refunding).Draw(t, "kind")
	for range rapid.IntRange(1, 4).Draw(t, "rounds") {
		requests := make([]crowdRequest, rapid.IntRange(1, 12).Draw(t, "requests"))
		for i := range requests {
			requests[i] = drawRequest(t, run)
		}
		c.burst(t, run, requests)
		if c.failed != "" {
			t.Fatal(c.failed)
		}
		for _, user := range []string{run + "a", run + "b"} {
			c.exact(t, run, user)
		}
	}
}

// burst sends requests at once. When all of them are with the handlers behind, refused or over, a
// handler may crash or be reloaded. Then the requests end.
func (c *crowd) burst(t *rapid.T, run string, requests []crowdRequest) {
	gate, arrived := make(chan struct{}), make(chan struct{}, len(requests))
	target, crashes := rapid.IntRange(0, 1).Draw(t, "which"), c.server != nil && rapid.IntRange(0, 3).Draw(t, "crashes") == 0
	var all sync.WaitGroup
	for _, req := range requests {
		h := c.handlers[req.handler]
		req.lost = crashes && req.handler == target
		req.quick = req.quick && !req.lost // otherwise it is not known whether Redis has received its end
		all.Go(func() {
			refused := true
			next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
				refused = false
				c.enters(run, &req)
				if !req.quick {
					arrived <- struct{}{}
					<-gate
				}
				c.leaves(&req)
				return req.end(w)
			})
			c.serve(h, run, &req, next)
			if refused || req.quick {
				arrived <- struct{}{}
			}
		})
	}
	for range requests {
		<-arrived
	}
	if crashes {
		c.crash(target)
	} else if rapid.IntRange(0, 2).Draw(t, "reloads") == 0 {
		c.reload(target)
	}
	close(gate)
	all.Wait()
	for _, a := range c.accounts {
		a.tokens += a.late
		a.late = 0
	}
}

// enters counts a request that was admitted.
func (c *crowd) enters(run string, req *crowdRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, both := c.accounts[req.user], c.accounts[run]
	a.failures++
	a.tokens += crowdCost
	a.slots++
	both.all++
	if a.failures > crowdFailures || a.tokens > crowdTokens || a.slots > crowdSlots || both.all > crowdAll {
		c.failed = fmt.Sprintf("more requests are admitted than the limits allow: %+v, in all %d", *a, both.all)
	}
}

// leaves takes back what the response gives back, before the store does.
func (c *crowd) leaves(req *crowdRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.accounts[req.user]
	a.slots--
	if req.lost {
		a.crashed++
		return
	}
	if req.status != http.StatusUnauthorized && req.ending != "panic" { // after a panic the client gets no response
		a.failures--
	}
	if difference := req.cost - crowdCost; req.cost >= 0 && difference < 0 {
		a.tokens += difference
	} else if req.cost >= 0 {
		a.late += difference
	}
}

// end writes the response.
func (req *crowdRequest) end(w http.ResponseWriter) error {
	if req.cost >= 0 {
		w.Header().Set("X-Tokens", strconv.FormatInt(req.cost, 10))
	}
	switch req.ending {
	case "returned":
		if req.status != http.StatusOK {
			return caddyhttp.Error(req.status, errors.New("denied"))
		}
		return nil
	case "hijacked":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return err
		}
		return conn.Close()
	case "panic":
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(req.status)
	switch req.ending {
	case "streamed":
		return http.NewResponseController(w).Flush()
	case "panic after":
		panic(http.ErrAbortHandler)
	}
	return nil
}

// serve sends a request through a handler.
func (c *crowd) serve(h caddytest.Handler, run string, req *crowdRequest, next caddyhttp.Handler) {
	defer func() {
		if reason := recover(); reason != nil && reason != http.ErrAbortHandler { // as it was thrown
			panic(reason)
		}
	}()
	w := &hijackable{ResponseRecorder: httptest.NewRecorder()}
	r := caddytest.Request(w, "203.0.113.7:1")
	r.Header.Set("User", req.user)
	r.Header.Set("Run", run)
	r.Header.Set("Kind", c.kind)
	err := h.ServeHTTP(w, r, next)
	if w.Header().Get("X-Tokens") != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed = "the client sees the cost header"
	}
	if err != nil && caddytest.StatusOf(err) == http.StatusServiceUnavailable {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed = "the store did not answer"
	}
}

// hijackable is a response recorder whose connection can be hijacked.
type hijackable struct{ *httptest.ResponseRecorder }

func (w *hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	ours, theirs := net.Pipe()
	_ = theirs.Close()
	return ours, nil, nil
}

// exact waits until the quota that is left is exact. That may take a moment: Redis receives
// adjustments later, and a bucket that has leaked a fraction of a token gives back so much less.
func (c *crowd) exact(t *rapid.T, run, user string) {
	a := c.accounts[user]
	c.await(t, "failures "+c.kind, user, max(0, crowdFailures-a.failures))
	c.await(t, "tokens "+c.kind, user, max(0, crowdTokens-a.tokens))
	c.await(t, "all", run, crowdAll-c.accounts[run].all)
	if a.crashed == 0 {
		c.await(t, "slots", user, crowdSlots)
	}
}

func (c *crowd) await(t rapid.TB, zone, key string, want int64) {
	t.Helper()
	what := fmt.Sprintf("zone %q, key %q, %+v: what is left", zone, key, *c.accounts[key])
	patient.UntilEqual(t, what, func() int64 { return c.left(t, zone, key) }, want)
}

// left is how much quota a key has left.
func (c *crowd) left(t rapid.TB, zone, key string) int64 {
	t.Helper()
	kept := c.kept[0]
	if kept.Rule(zone) == nil { // no request has met the zone in the first handler
		kept = c.kept[1]
	}
	d, err := kept.Take(zone, key, 0)
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// allComesBack waits until the leases of lost requests and the short windows are over.
func (c *crowd) allComesBack() {
	crashed := int64(0)
	for _, user := range c.users {
		crashed += c.accounts[user].crashed
		c.await(c, "slots", user, crowdSlots)
		c.await(c, "short", user, 1000)
	}
	c.Logf("crashes have lost %d requests", crashed)
}
