//go:build deep

package limits_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// managedLimit is the limit of most zones of a managed fleet. Parts of it are lent as parts of a larger one are, and most
// of the time goes by until requests have used it up.
var managedLimit = deep.Steps(300, 1000)

// of1000 returns what a number is for the limit of this run that is made for a limit of 1000.
func of1000(n int) int { return n * managedLimit / 1000 }

// perDay is a limit of that many requests.
func perDay(n int) string { return strconv.Itoa(n) + "/24h" }

// managedFleet is three instances with zones that lend, with the options that operators manage keys by, and an upstream
// that counts what reaches it, by zone and key.
type managedFleet struct {
	caddys []*harness.Server
	redis  *redistest.Server
	config string
	client *http.Client

	mu      sync.Mutex
	arrived map[string]int64
}

func startManaged(t *testing.T) *managedFleet {
	t.Helper()
	f := &managedFleet{redis: redistest.Start(t), arrived: make(map[string]int64), client: harness.NewClient(t, "")}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.arrived[r.URL.Path+" "+r.URL.Query().Get("k")]++
		f.mu.Unlock()
		w.Header().Set("X-Cost", "1")
		if r.URL.Query().Has("bad") {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(upstream.Close)
	store := "store redis {\naddress " + f.redis.Addr() + "\n" + harness.Timeout() + "\n}\non_store_error deny\n"
	route := func(name, options string) string {
		return "handle /" + name + " {\nrate_limit {\nzone " + name + " {\n" + options + "\n}\n" + store + "}\nreverse_proxy {$UPSTREAM}\n}\n"
	}
	zone := func(name string, options ...string) string {
		lines := "key {query.k}\nalgorithm sliding_window_log " + perDay(managedLimit) + "\nlend 10s\n" + strings.Join(options, "\n")
		return route(name, lines)
	}
	f.config = harness.Caddyfile("", zone("managed", "overrides")+zone("banning", "overrides", "ban 48h after 30 refusals in 1h")+
		zone("trial", "dry_run")+zone("rollout", "enforce 50")+zone("charged", "charge on_response {\nstatus 401\n}")+zone("priced", "cost_header X-Cost")+
		route("plans", "key {query.k}\nlend 10s\nplan {query.plan} {\nfree sliding_window_log "+perDay(of1000(300))+"\npro sliding_window_log "+perDay(managedLimit)+"\ndefault free\n}")+
		route("waits", "key {query.k}\nalgorithm token_bucket 50/1s\nmax_wait 30s\nlend 100ms")+
		route("mixed", "key {query.k}\nlend 10s\nplan {query.plan} {\nslots concurrency 20\nrate sliding_window_log "+perDay(managedLimit)+"\ndefault rate\n}"))
	for range 3 {
		f.caddys = append(f.caddys, harness.StartCaddy(t, f.config, "UPSTREAM="+upstream.Listener.Addr().String()))
	}
	return f
}

// reached returns how many requests of a key have reached the upstream.
func (f *managedFleet) reached(zone, key string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.arrived["/"+zone+" "+key]
}

// send makes requests at some instances in turn, and returns how many were refused.
func (f *managedFleet) send(t *testing.T, zone, query string, n int, at ...int) (refused int) {
	t.Helper()
	for i := range n {
		switch a := f.caddys[at[i%len(at)]].Get(f.client, "/"+zone+"?"+query); a.Status {
		case http.StatusTooManyRequests:
			refused++
		case http.StatusOK, http.StatusUnauthorized:
		default:
			t.Fatalf("status %d", a.Status)
		}
	}
	return refused
}

// lent is what the instances hold of a zone.
func (f *managedFleet) lent(zone string) (held [3]int64) {
	for i, s := range f.caddys {
		var stores []adminapi.Store
		s.Ask("/rate_limit/stores", &stores)
		for _, s := range stores {
			held[i] += s.Lent[zone]
		}
	}
	return held
}

// hold has all instances hold something of a key, and returns how much.
func (f *managedFleet) hold(t *testing.T, zone, key string) (sum int64) {
	t.Helper()
	patient.Until(t, "all instances hold something", func() bool {
		f.send(t, zone, "k="+key, 30, 0, 1, 2)
		held := f.lent(zone)
		sum = held[0] + held[1] + held[2]
		return held[0] > 0 && held[1] > 0 && held[2] > 0
	})
	return sum
}

// noticed waits until no instance holds anything of a zone.
func (f *managedFleet) noticed(t *testing.T, zone string) {
	t.Helper()
	patient.Until(t, "all instances notice", func() bool { return f.lent(zone) == [3]int64{} })
}

// operator runs a command at the first instance.
func (f *managedFleet) operator(t *testing.T, args ...string) {
	t.Helper()
	if output, err := f.caddys[0].RateLimit(args...); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, output)
	}
}

// TestLendManaged: what operators do at one instance holds at all, also for what was lent before, and the upstream gets
// no more than docs/exactness.md says.
func TestLendManaged(t *testing.T) {
	t.Parallel()
	f, limit, raised := startManaged(t), int64(managedLimit), int64(of1000(1200))
	for name, c := range map[string]struct {
		do      []string
		least   int64 // that the new limit allows
		most    int64 // that reaches the upstream in all
		refuses bool  // whether everything is refused that is beyond least
	}{
		"lowered":   {[]string{"set", "managed", "lowered", "50/24h"}, 50, limit, true},
		"raised":    {[]string{"set", "managed", "raised", perDay(of1000(1200))}, raised, raised, false},
		"forbidden": {[]string{"ban", "managed", "forbidden"}, 0, limit, true},
	} {
		held := f.hold(t, "managed", name)
		before := f.reached("managed", name)
		f.operator(t, c.do...)
		f.send(t, "managed", "k="+name, 30, 1, 2)
		f.noticed(t, "managed")
		if n := f.reached("managed", name); n > before+held+30 || c.refuses && n > max(before+held, c.least) {
			t.Errorf("%s: %d reached the upstream before, %d until all had noticed, %d were held", name, before, n, held)
		}
		reached := f.reached("managed", name)
		f.send(t, "managed", "k="+name, of1000(1500), 0, 1, 2)
		switch n := f.reached("managed", name); {
		case c.refuses && n > max(reached, c.least): // what was held until then counted as used
			t.Errorf("%s: %d more reached the upstream", name, n-reached)
		case n > c.most, !c.refuses && n != c.most:
			t.Errorf("%s: %d reached the upstream, want at most %d", name, n, c.most)
		}
	}
	f.exempt(t)
	f.earned(t)
	f.reset(t)
}

func (f *managedFleet) exempt(t *testing.T) {
	f.hold(t, "managed", "friend")
	f.operator(t, "set", "managed", "friend", "--exempt")
	f.noticed(t, "managed")
	if refused := f.send(t, "managed", "k=friend", of1000(1500), 0, 1, 2); refused > 0 {
		t.Errorf("%d requests of an exempt key are refused", refused)
	}
}

// earned: 30 refusals at all instances ban the key, no one of them is missed, and those that hold something give it up.
func (f *managedFleet) earned(t *testing.T) {
	banned := func(at int) bool {
		a := f.caddys[at].Get(f.client, "/banning?k=noisy")
		return a.Status == http.StatusTooManyRequests && len(a.Header.Get("Retry-After")) == 6
	}
	refused := 0
	for i := 0; refused < 30; i++ {
		if a := f.caddys[i%3].Get(f.client, "/banning?k=noisy"); a.Status == http.StatusTooManyRequests {
			refused++
		}
		if i > 2000 {
			t.Fatalf("%d refusals of %d", refused, i)
		}
	}
	for at := range f.caddys {
		patient.Until(t, "the ban", func() bool { return banned(at) })
	}
	var k adminapi.Key
	if f.caddys[1].Ask("/rate_limit/zones/banning/key?key=noisy", &k); f.reached("banning", "noisy") > int64(managedLimit) {
		t.Errorf("%d reached the upstream: %+v", f.reached("banning", "noisy"), k)
	}
	f.operator(t, "unban", "banning", "noisy")
	for at := range f.caddys {
		patient.Until(t, "the end of the ban", func() bool { return !banned(at) })
	}
}

func (f *managedFleet) reset(t *testing.T) {
	limit, held := int64(managedLimit), f.hold(t, "managed", "again")
	before := f.reached("managed", "again")
	f.operator(t, "reset", "managed", "again")
	f.send(t, "managed", "k=again", of1000(1500), 0, 1, 2)
	if n := f.reached("managed", "again") - before; n > limit+held || n < limit {
		t.Errorf("%d reached the upstream after a reset, %d were held", n, held)
	}
}

// TestLendWithOptions: a zone that lends keeps its promises with all other options of zones.
func TestLendWithOptions(t *testing.T) {
	t.Parallel()
	f := startManaged(t)
	limit, more := int64(managedLimit), int64(of1000(1100))
	calls := harness.ScriptCalls(t, f.redis)
	if refused := f.send(t, "trial", "k=1", of1000(1500), 0, 1, 2); refused > 0 || f.reached("trial", "1") != int64(of1000(1500)) {
		t.Errorf("a dry run refuses %d", refused)
	}
	if made := harness.ScriptCalls(t, f.redis) - calls; made > of1000(900) {
		t.Errorf("%d calls for %d requests of a dry run", made, of1000(1500))
	}
	enforced := 0
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		refused := f.send(t, "rollout", "k="+key, of1000(1100), 0, 1, 2)
		if n := f.reached("rollout", key); n != limit && n != more || int64(refused) != more-n {
			t.Errorf("enforce: %d reached the upstream", n)
		}
		enforced += min(refused, 1)
	}
	if enforced == 0 || enforced == 6 {
		t.Errorf("enforce 50 is enforced for %d keys of 6", enforced)
	}
	f.send(t, "charged", "k=1", of1000(1100), 0, 1, 2) // which cost nothing
	f.send(t, "charged", "k=1&bad", of1000(1500), 0, 1, 2)
	if n := f.reached("charged", "1"); n < more+int64(of1000(900)) || n > more+limit {
		t.Errorf("charge on_response: %d reached the upstream", n)
	}
	f.send(t, "priced", "k=1", of1000(1500), 0, 1, 2)
	if n := f.reached("priced", "1"); n != limit {
		t.Errorf("cost_header: %d reached the upstream", n)
	}
	for i := range of1000(1500) {
		f.send(t, "plans", "k=1&plan="+[]string{"free", "pro"}[i/3%2], 1, i%3)
	}
	if n := f.reached("plans", "1"); n > limit || n < int64(of1000(600)) {
		t.Errorf("plans: %d reached the upstream", n)
	}
	began := time.Now()
	if refused := f.send(t, "waits", "k=1", 120, 0, 1, 2); refused > 0 || time.Since(began) < 69*time.Second/50 {
		t.Errorf("max_wait: %d of 120 are refused, in %v", refused, time.Since(began))
	}
	f.send(t, "mixed", "k=1&plan=slots", 60, 0)
	if n := f.reached("mixed", "1"); n != 60 || f.lent("mixed") != [3]int64{} {
		t.Errorf("mixed: %d of 60 reached the upstream, one at a time; %v is lent", n, f.lent("mixed"))
	}
	f.send(t, "mixed", "k=1&plan=rate", of1000(1500), 0, 1, 2)
	if n := f.reached("mixed", "1") - 60; n != limit {
		t.Errorf("mixed: %d reached the upstream", n)
	}
}
