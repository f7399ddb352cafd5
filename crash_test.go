package caddyratelimit_test

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

// TestCrashingHandlers sends bursts of requests that end in every way through handlers
// that share their limits, and crashes or reloads handlers while requests are under way.
// No zone ever lets more pass than its limit, and what is left is exact after each burst:
// what a crash has lost stays booked, and is back when its window or its lease is over.
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

// What the zones of a crowd have.
const (
	crowdFailures = 6
	crowdTokens   = 40
	crowdBooked   = 3 // of them for a request
	crowdSlots    = 5
	crowdAll      = 60
)

// crowd is handlers that share limits: each with a store of its own in front of one Redis,
// or all with the one in memory.
type crowd struct {
	*testing.T
	zones    string
	server   *redistest.Server // nil in memory
	handlers [2]caddytest.Handler
	kept     [2]*caddytest.Kept
	proxies  [2]*faultproxy.Proxy
	users    []string // of all rounds

	kind string // which of the zones this round is for

	mu       sync.Mutex
	accounts map[string]*due
	failed   string
}

// due is what a key has to do with the zones. What a request has cost in addition counts
// when its burst is over: until then others may have been admitted before.
type due struct {
	failures, tokens, all, slots int64
	late                         int64
	crashed                      int64 // slots of those who give nothing back
}

func newCrowd(t *testing.T, where string) *crowd {
	c := &crowd{T: t, accounts: make(map[string]*due)}
	if where == "redis" {
		c.server = redistest.Start(t)
	}
	var zones strings.Builder
	for i, algorithm := range refunding {
		fmt.Fprintf(&zones, `
			"failures %[1]s": {"match": [{"header": {"Kind": [%[1]q]}}], "key": "{http.request.header.User}", %[2]s, "max_events": %[3]d,
				"charge_on_response": {"status_code": [401]}},
			"tokens %[1]s": {"match": [{"header": {"Kind": [%[1]q]}}], "key": "{http.request.header.User}", %[4]s, "max_events": %[5]d,
				"cost": %[6]d, "cost_header": "X-Tokens"},`,
			algorithm, unhurried(algorithm), crowdFailures, unhurried(refunding[(i+2)%len(refunding)]), crowdTokens, crowdBooked)
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

// unhurried is an algorithm in whose window nothing comes back while the test runs.
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

// open starts a handler anew, in a process of its own as far as Redis can tell.
func (c *crowd) open(i int) {
	if c.server != nil {
		c.proxies[i] = faultproxy.Start(c, c.server.Addr())
		c.kept[i] = caddytest.KeepRedis(c, redisstore.Options{Address: c.proxies[i].Addr(), Timeout: 10 * time.Second})
	}
	c.reload(i)
}

// reload replaces a handler by one of the next config.
func (c *crowd) reload(i int) {
	was := c.handlers[i]
	c.handlers[i] = caddytest.Load(c, `{`+c.kept[i].Option()+`"on_store_error": "deny", "log": "off", "rate_limits": `+c.zones+`}`)
	if was != nil {
		if err := was.Cleanup(); err != nil {
			c.Error(err)
		}
	}
}

// crash cuts a handler's store off for ever: nothing that its requests give back arrives,
// and nothing is renewed.
func (c *crowd) crash(i int) {
	c.proxies[i].Inject(func(string) faultproxy.Fault { return faultproxy.CutBefore })
	was := c.kept[i]
	c.open(i)
	c.kept[i].CopyRules(was)
}

// visit is a request, and how it ends.
type visit struct {
	handler int
	user    string
	status  int
	cost    int64 // what the upstream says it has cost; below 0: nothing
	how     string
	quick   bool // does not wait for the others
	lost    bool // its handler crashes meanwhile
}

var endings = []string{"written", "returned", "streamed", "hijacked", "panic", "panic after"}

func drawVisit(t *rapid.T, run string) visit {
	v := visit{
		handler: rapid.IntRange(0, 1).Draw(t, "handler"),
		user:    run + rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(t, "user"),
		status:  rapid.SampledFrom([]int{200, 401, 403}).Draw(t, "status"),
		cost:    rapid.Int64Range(-3, 25).Draw(t, "cost"),
		how:     rapid.SampledFrom(endings).Draw(t, "ending"),
		quick:   rapid.IntRange(0, 3).Draw(t, "quick") == 0,
	}
	switch v.how {
	case "hijacked":
		v.status = http.StatusSwitchingProtocols
	case "panic":
		v.status = http.StatusInternalServerError
	}
	return v
}

func (c *crowd) rounds(t *rapid.T, run string) {
	for _, user := range []string{run + "a", run + "b"} {
		c.users = append(c.users, user)
		c.accounts[user] = new(due)
	}
	c.accounts[run] = new(due) // of both together
	c.kind = rapid.SampledFrom(refunding).Draw(t, "kind")
	for range rapid.IntRange(1, 4).Draw(t, "rounds") {
		visits := make([]visit, rapid.IntRange(1, 12).Draw(t, "visits"))
		for i := range visits {
			visits[i] = drawVisit(t, run)
		}
		c.burst(t, run, visits)
		if c.failed != "" {
			t.Fatal(c.failed)
		}
		for _, user := range []string{run + "a", run + "b"} {
			c.exact(t, run, user)
		}
	}
}

// burst sends requests at once. When all of them are inside, refused or over, a handler
// crashes or is reloaded, and then they end.
func (c *crowd) burst(t *rapid.T, run string, visits []visit) {
	gate, settled := make(chan struct{}), make(chan struct{}, len(visits))
	which, crashes := rapid.IntRange(0, 1).Draw(t, "which"), c.server != nil && rapid.IntRange(0, 3).Draw(t, "crashes") == 0
	var all sync.WaitGroup
	for _, v := range visits {
		h := c.handlers[v.handler]
		v.lost = crashes && v.handler == which
		v.quick = v.quick && !v.lost // or nobody knew whether Redis has heard of it
		all.Go(func() {
			refused := true
			next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
				refused = false
				c.enters(run, &v)
				if !v.quick {
					settled <- struct{}{}
					<-gate
				}
				c.leaves(&v)
				return v.end(w)
			})
			c.serve(h, run, &v, next)
			if refused || v.quick {
				settled <- struct{}{}
			}
		})
	}
	for range visits {
		<-settled
	}
	if crashes {
		c.crash(which)
	} else if rapid.IntRange(0, 2).Draw(t, "reloads") == 0 {
		c.reload(which)
	}
	close(gate)
	all.Wait()
	for _, a := range c.accounts {
		a.tokens += a.late
		a.late = 0
	}
}

// enters books a request that was admitted.
func (c *crowd) enters(run string, v *visit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, both := c.accounts[v.user], c.accounts[run]
	a.failures++
	a.tokens += crowdBooked
	a.slots++
	both.all++
	if a.failures > crowdFailures || a.tokens > crowdTokens || a.slots > crowdSlots || both.all > crowdAll {
		c.failed = fmt.Sprintf("too many are inside: %+v, in all %d", *a, both.all)
	}
}

// leaves gives back what the response will, which is before the store hears of it.
func (c *crowd) leaves(v *visit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.accounts[v.user]
	a.slots--
	if v.lost {
		a.crashed++
		return
	}
	if v.status != http.StatusUnauthorized && v.how != "panic" { // of which the client hears nothing
		a.failures--
	}
	if difference := v.cost - crowdBooked; v.cost >= 0 && difference < 0 {
		a.tokens += difference
	} else if v.cost >= 0 {
		a.late += difference
	}
}

// end writes the response.
func (v *visit) end(w http.ResponseWriter) error {
	if v.cost >= 0 {
		w.Header().Set("X-Tokens", strconv.FormatInt(v.cost, 10))
	}
	switch v.how {
	case "returned":
		if v.status != http.StatusOK {
			return caddyhttp.Error(v.status, errors.New("no"))
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
	w.WriteHeader(v.status)
	switch v.how {
	case "streamed":
		return http.NewResponseController(w).Flush()
	case "panic after":
		panic(http.ErrAbortHandler)
	}
	return nil
}

// serve sends a request through a handler.
func (c *crowd) serve(h caddytest.Handler, run string, v *visit, next caddyhttp.Handler) {
	defer func() {
		if reason := recover(); reason != nil && reason != http.ErrAbortHandler { //nolint:errorlint // as it was thrown
			panic(reason)
		}
	}()
	w := &hijackable{ResponseRecorder: httptest.NewRecorder()}
	r := caddytest.Request(w, "203.0.113.7:1")
	r.Header.Set("User", v.user)
	r.Header.Set("Run", run)
	r.Header.Set("Kind", c.kind)
	err := h.ServeHTTP(w, r, next)
	if w.Header().Get("X-Tokens") != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed = "the client is told what the upstream said"
	}
	if err != nil && caddytest.StatusOf(err) == http.StatusServiceUnavailable {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed = "the store gave no answer"
	}
}

// hijackable is a response whose connection can be taken over.
type hijackable struct{ *httptest.ResponseRecorder }

func (w *hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	ours, theirs := net.Pipe()
	_ = theirs.Close()
	return ours, nil, nil
}

// exact waits until what is left is what was not used. It may take a moment: Redis hears of
// corrections later, and a bucket that has leaked by a fraction of a token gives back less
// by that much.
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

// left asks the store.
func (c *crowd) left(t rapid.TB, zone, key string) int64 {
	t.Helper()
	kept := c.kept[0]
	if kept.Rule(zone) == nil { // no request has come to the first handler
		kept = c.kept[1]
	}
	d, err := kept.Take(zone, key, 0)
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// allComesBack waits for what crashes have lost.
func (c *crowd) allComesBack() {
	crashed := int64(0)
	for _, user := range c.users {
		crashed += c.accounts[user].crashed
		c.await(c, "slots", user, crowdSlots)
		c.await(c, "short", user, 1000)
	}
	c.Logf("%d requests were lost in crashes", crashed)
}
