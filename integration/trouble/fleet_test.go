package trouble_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	_ "github.com/seed-161337e5/caddyratelimit"
	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	user, password = "limiter", "s3cret"

	// generous is the timeout where the fault answers at once.
	generous = 20 * time.Second

	// pair is the number of instances of a fleet whose fault is in a table.
	pair = 2
)

// fleet is a Redis, and instances that reach it through proxies.
type fleet struct {
	t        *testing.T
	redis    *redistest.Server // the one that the instances ask in the end
	proxies  []*faultproxy.Proxy
	stores   []*caddytest.Kept
	configs  []caddy.Context
	probe    []caddytest.Handler
	cells    []*cell
	remember bool          // whether instances remember refusals
	left     chan struct{} // closed when requests that hold slots end
	holders  sync.WaitGroup
	ended    bool
}

// newFleet starts a Redis, and a number of instances. The timeout is that of a decision, 0 for one that is generous.
func newFleet(t *testing.T, instances int, timeout time.Duration, denyCache bool) *fleet {
	f := &fleet{t: t, remember: denyCache, left: make(chan struct{})}
	f.redis = f.startRedis()
	if timeout == 0 {
		timeout = generous
	}
	for range instances {
		config, _ := caddytest.Logged(t)
		proxy := faultproxy.Start(t, f.redis.Addr())
		o := redisstore.Options{Address: proxy.Addr(), Username: user, Password: password, Timeout: timeout, DenyCache: -1}
		if denyCache {
			o.DenyCache = time.Minute
		}
		f.configs, f.proxies, f.stores = append(f.configs, config), append(f.proxies, proxy), append(f.stores, caddytest.KeepRedis(t, o))
	}
	for i := range instances {
		f.probe = append(f.probe, f.load(i, "probe", `"max_events": 1000000, `+window, "allow"))
	}
	t.Cleanup(f.end)
	return f
}

func (f *fleet) startRedis() *redistest.Server {
	f.t.Helper()
	return redistest.Start(f.t, redistest.WithUser(user, password, rights(f.t)...), redistest.WithArgs("--enable-debug-command", "local"))
}

// warm has each instance ask Redis.
func (f *fleet) warm() {
	f.t.Helper()
	for _, h := range f.probe {
		if status, _ := caddytest.Serve(f.t, h, "203.0.113.7:1"); status != http.StatusOK {
			f.t.Fatalf("before the fault: status %d", status)
		}
	}
}

func (f *fleet) load(i int, zone, json, policy string) caddytest.Handler {
	return caddytest.LoadInto(f.t, f.configs[i], fmt.Sprintf(`{%s"instances": %d, "rate_limits": {%q: {%s, "on_store_error": %q}}}`,
		f.stores[i].Option(), len(f.stores), zone, json, policy))
}

// end lets all requests end, and closes the stores, which then give back what they have borrowed.
func (f *fleet) end() {
	if f.ended {
		return
	}
	f.ended = true
	close(f.left)
	f.holders.Wait()
	for _, c := range f.cells {
		for _, h := range c.handlers {
			caddytest.CleanUp(f.t, h)
		}
	}
	for _, h := range f.probe {
		caddytest.CleanUp(f.t, h)
	}
}

// cell is one kind of zone with one on_store_error under one fault.
type cell struct {
	*fleet
	*kind
	fault        *fault
	policy, zone string
	handlers     []caddytest.Handler
	rule         *store.Rule
	tallies      map[string]*tally
	pending      []func(http.HandlerFunc) // end the requests that began before the fault
}

// The phases of a cell.
const (
	before = iota
	during
	after
	phases
)

// by says who has decided a request.
type by string

const (
	byRedis  by = "Redis"  // or by what Redis has lent, or by a refusal that the instance remembers
	byShare  by = "share"  // in the memory of the instance
	byNobody by = "nobody" // on_store_error allow or deny
)

// answer is what a request got.
type answer struct {
	by     by
	passed bool
	status int
	quota  int64
}

// tally counts the answers of a client.
type tally struct {
	answers [phases][]answer
	local   []int64 // passed by the instance's share
}

// count counts answers of a phase.
func (y *tally) count(phase int, by by, passed bool) (n int64) {
	for _, a := range y.answers[phase] {
		if a.by == by && a.passed == passed {
			n++
		}
	}
	return n
}

// total counts the answers of all phases.
func (y *tally) total(by by, passed bool) (n int64) {
	for phase := range phases {
		n += y.count(phase, by, passed)
	}
	return n
}

func (f *fleet) newCell(fault *fault, k *kind, policy string) *cell {
	c := &cell{fleet: f, kind: k, fault: fault, policy: policy, tallies: make(map[string]*tally)}
	c.zone = fmt.Sprintf("%s %s %s", fault.name, k.name, policy)
	for i := range f.stores {
		c.handlers = append(c.handlers, f.load(i, c.zone, k.json, policy))
	}
	for _, client := range k.clients() {
		c.tallies[client] = &tally{local: make([]int64, len(f.stores))}
	}
	f.cells = append(f.cells, c)
	return c
}

// held is a request that stays in the handlers behind until wait is closed. over is closed when it has ended.
type held struct {
	wait   <-chan struct{}
	over   chan struct{}
	finish http.HandlerFunc // writes the response
}

// send sends a request, which is held unless h is nil.
func (c *cell) send(i int, client, cost string, h *held) answer {
	w := httptest.NewRecorder()
	r := caddytest.Request(w, "203.0.113.7:1000")
	r.Header.Set("Client", client)
	if cost != "" {
		r.Header.Set("Cost", cost)
	}
	inside, done := make(chan answer, 1), make(chan error, 1)
	serve := func() {
		done <- c.handlers[i].ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			inside <- c.answered(http.StatusOK, client, r)
			if h != nil {
				<-h.wait
			}
			if h != nil && h.finish != nil {
				h.finish(w, r)
			}
			return nil
		}))
	}
	if h == nil {
		serve()
	} else {
		h.over = make(chan struct{})
		c.holders.Go(func() { defer close(h.over); serve() })
	}
	select {
	case a := <-inside:
		return a
	case err := <-done:
		select {
		case a := <-inside:
			return a
		default:
		}
		if err != nil {
			return c.answered(caddytest.StatusOf(err), client, r)
		}
		return c.answered(w.Code, client, r)
	}
}

// answered reads an answer. What was not decided has no limit.
func (c *cell) answered(status int, client string, r *http.Request) answer {
	a := answer{passed: status == http.StatusOK, status: status}
	a.quota, _ = strconv.ParseInt(caddytest.Replaced(r, "{http.rate_limit.limit}"), 10, 64)
	switch {
	case a.quota > 0 && a.quota == c.quotas[1]:
		a.by = byShare
	case a.quota > 0, a.passed && client == "exempt", !a.passed && status != http.StatusServiceUnavailable:
		a.by = byRedis
	default:
		a.by = byNobody
	}
	return a
}

// ask sends a request in a phase.
func (c *cell) ask(phase, i int, client string) answer {
	if c.fault.each != nil && phase == during {
		c.fault.each(c.fleet, i)
	}
	a := c.send(i, client, "", c.holding())
	c.note(phase, i, client, a)
	return a
}

func (c *cell) note(phase, i int, client string, a answer) {
	y := c.tallies[client]
	y.answers[phase] = append(y.answers[phase], a)
	if a.by == byShare && a.passed {
		y.local[i]++
	}
}

// prepare does what has happened before the fault.
func (c *cell) prepare(auditor *redisstore.Store) {
	c.t.Helper()
	if a := c.send(0, "warm", "", c.holding()); a.by != byRedis || !a.passed {
		c.t.Fatalf("%s: before the fault: %+v", c.zone, a)
	}
	c.rule = c.stores[0].Rule(c.zone)
	for n := range c.limit/c.cost + 1 {
		c.ask(before, int(n/3)%pair, "used up")
	}
	if c.first > 0 {
		for n := range c.first / c.cost {
			i := int(n) % pair
			if c.lends {
				i = 0 // which borrows then
			}
			c.ask(before, i, "known")
		}
	}
	switch c.special {
	case "late", "refund":
		c.begin()
	case "override":
		c.override(auditor)
		for n := range 4 {
			c.ask(before, n%pair, "overridden")
		}
	case "ban":
		c.note(before, 0, "banned", c.send(0, "banned", "1", nil))
		for range 3 {
			c.note(before, 0, "banned", c.send(0, "banned", strconv.FormatInt(c.limit, 10), nil))
		}
	}
}

// override gives clients rules of their own.
func (c *cell) override(auditor *redisstore.Store) {
	c.t.Helper()
	for client, o := range map[string]store.Override{
		"overridden": {Kind: store.KindLimit, Limit: algorithms.Limit{Events: overridden, Window: c.rule.Limit().Window}}, "exempt": {Kind: store.KindExempt}, "barred": {Kind: store.KindBanned},
	} {
		if err := auditor.Set(c.t.Context(), c.rule, client, o); err != nil {
			c.t.Fatalf("%s: %v", c.zone, err)
		}
	}
}

// holding returns how a request is held that takes a slot.
func (c *cell) holding() *held {
	if !c.slots {
		return nil
	}
	return &held{wait: c.left}
}

// begin begins three requests whose cost the responses decide.
func (c *cell) begin() {
	for n := range 3 {
		wait := make(chan struct{})
		h := &held{wait: wait}
		c.note(before, n%pair, "pending", c.send(n%pair, "pending", "", h))
		c.pending = append(c.pending, func(finish http.HandlerFunc) {
			h.finish = finish
			close(wait)
			<-h.over
		})
	}
}

// finish ends the requests that [cell.begin] began: each has cost 3, or nothing.
func (c *cell) finish() {
	for _, end := range c.pending {
		end(func(w http.ResponseWriter, _ *http.Request) {
			if c.special == "late" {
				w.Header().Set("X-Cost", "3")
			} else {
				w.WriteHeader(http.StatusNotFound)
			}
		})
	}
	c.pending = nil
}

// press sends requests of all clients through both instances in turn, until the limit and the shares are
// used up.
func (c *cell) press(phase int) {
	for _, client := range c.clients() {
		if client == "pending" && phase == during {
			continue // what it uses is decided by the responses alone
		}
		requests := max(c.allowed(client), c.limit)/c.cost + 2
		if c.lends {
			requests *= 2 // one instance may have to wait for what the other holds
		}
		for n := range requests {
			c.ask(phase, int(n)%pair, client)
		}
	}
}

// recovered waits until each instance is served again, and has sent what waited.
func (f *fleet) recovered() {
	f.t.Helper()
	for i, s := range f.stores {
		patient.Until(f.t, "Redis to answer", func() bool {
			_, err := s.Take("probe", "probe", 1) // which a replica does not answer
			return err == nil
		})
		patient.Until(f.t, "what waits", func() bool {
			empty := f.stats(i).Waiting == 0
			s.Used(f.t, "probe", strconv.Itoa(i)) // and with it what was on its way
			return empty && f.stats(i).Waiting == 0
		})
	}
}

func (f *fleet) stats(i int) store.Stats { return f.stores[i].Opened().(store.Observed).Stats() }
