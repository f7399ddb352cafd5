package limiter_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
)

// lenders are two instances that share a Redis, with a zone that lends and lets pass what is above its limit of 400.
type lenders struct {
	t     *testing.T
	redis *redistest.Server
	kept  [2]*caddytest.Kept
	both  [2]caddytest.Handler
	ctx   [2]caddy.Context

	mu  sync.Mutex
	got map[string]int // how many requests had which result, as passing says it
}

const lenderLimit = 400

// startLenders starts two instances. Their zone has options, and there may be more zones. The admin API is that of the
// second instance.
func startLenders(t *testing.T, options, more string, redisOptions ...redistest.Option) *lenders {
	t.Helper()
	f := &lenders{t: t, redis: redistest.Start(t, redisOptions...), got: make(map[string]int)}
	for i := range f.both {
		f.ctx[i] = caddytest.Config(t)
		f.kept[i] = caddytest.KeepRedis(t, redisstore.Options{Address: f.redis.Addr(), Timeout: 10 * time.Second})
		soft := softZone("soft", options+fmt.Sprintf(`"algorithm": "fixed_window", "max_events": %d, "window": "500h", "lend": "10s"`, lenderLimit))
		f.both[i] = caddytest.LoadInto(t, f.ctx[i], `{`+f.kept[i].Option()+`"instances": 2, "log": "off", "rate_limits": {`+soft+more+`}}`)
	}
	return f
}

// send sends requests to one of the instances, and returns the results.
func (f *lenders) send(instance, n int) (got map[string]int) {
	got = make(map[string]int)
	for range n {
		got[passing(f.t, f.both[instance], caddytest.Passing, "User", "a")]++
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for result, n := range got {
		f.got[result] += n
	}
	return got
}

// calls returns how many scripts Redis has run.
func (f *lenders) calls() (n int) {
	f.t.Helper()
	stats, err := f.redis.Admin().Info(f.t.Context(), "commandstats").Result()
	if err != nil {
		f.t.Fatal(err)
	}
	for line := range strings.SplitSeq(stats, "\r\n") {
		var calls int
		for _, command := range []string{"evalsha", "fcall"} {
			if _, err := fmt.Sscanf(line, "cmdstat_"+command+":calls=%d,", &calls); err == nil {
				n += calls
			}
		}
	}
	return n
}

// want checks how many requests had which result. A loan ends if its process does not run for half a minute. Then more is
// marked.
func (f *lenders) want(name string, began time.Time, want map[string]int) {
	f.t.Helper()
	if f.got["200"] > want["200"] {
		f.t.Errorf("%v, want at most %d without a mark", f.got, want["200"])
	}
	if time.Since(began) > 10*time.Second {
		f.t.Logf("%s took %v: %v", name, time.Since(began), f.got)
		return
	}
	if fmt.Sprint(f.got) != fmt.Sprint(want) {
		f.t.Errorf("got %v, want %v", f.got, want)
	}
}

// TestOverPassAndLend: what passes without a mark is the limit of the whole fleet, however its requests come to the instances,
// and whatever other zones decide. Requests above it are marked, unless another zone refuses them.
func TestOverPassAndLend(t *testing.T) {
	t.Parallel()
	strict := func(options string) string {
		return `, "strict": {"algorithm": "fixed_window", "window": "500h", ` + options + `}`
	}
	over := "200 soft"
	for _, c := range []struct {
		name string
		more string // zones
		send [][2]int
		want map[string]int
	}{
		{"this instance reaches it", "", [][2]int{{0, 600}}, map[string]int{"200": 400, over: 200}},
		{"another instance reaches it", "", [][2]int{{0, 600}, {1, 100}}, map[string]int{"200": 400, over: 300}},
		{"both reach it", "", [][2]int{{0, 150}, {1, 400}, {0, 400}, {1, 50}}, map[string]int{"200": 400, over: 600}},
		{
			"beside a dry run", strict(`"max_events": 300, "lend": "10s", "dry_run": true`),
			[][2]int{{0, 300}, {1, 300}, {0, 300}, {1, 100}},
			map[string]int{"200": 400, over: 600},
		},
		{
			"beside enforce 0", strict(`"max_events": 300, "lend": "10s", "enforce": 0`),
			[][2]int{{0, 300}, {1, 300}, {0, 300}, {1, 100}},
			map[string]int{"200": 400, over: 600},
		},
		{
			"beside a limit below", strict(`"max_events": 300, "lend": "10s"`),
			[][2]int{{0, 200}, {1, 200}, {0, 200}, {1, 100}},
			map[string]int{"200": 300, "429": 400},
		},
		{
			"beside a limit above", strict(`"max_events": 500, "lend": "10s", "enforce": 100`),
			[][2]int{{0, 300}, {1, 300}, {0, 300}, {1, 100}},
			map[string]int{"200": 400, over: 100, "429": 500},
		},
		{
			// With two instances, one may be refused, and so banned, before the other has spent what it holds.
			"beside a ban", strict(`"max_events": 500, "lend": "10s", "ban": {"duration": "20m", "after": 3, "window": "1m"}`),
			[][2]int{{0, 600}, {1, 100}},
			map[string]int{"200": 400, over: 100, "429": 200},
		},
		{
			"next to slots", `, "strict": {"algorithm": "concurrency", "max_events": 10, "lend": "10s"}`,
			[][2]int{{0, 300}, {1, 300}, {0, 300}, {1, 100}},
			map[string]int{"200": 400, over: 600},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, began := startLenders(t, "", c.more), time.Now()
			sum := 0
			for _, step := range c.send {
				f.send(step[0], step[1])
				sum += step[1]
			}
			f.want(c.name, began, c.want)
			if n := f.calls(); n > sum/2 && time.Since(began) < 10*time.Second {
				t.Errorf("%d requests took %d calls, so nothing was lent", sum, n)
			}
		})
	}
	t.Run("at the same time", func(t *testing.T) {
		t.Parallel()
		f, began := startLenders(t, "", ""), time.Now()
		var wait sync.WaitGroup
		for i := range 8 {
			wait.Go(func() { f.send(i%2, 100) })
		}
		wait.Wait()
		f.want("at the same time", began, map[string]int{"200": 400, over: 400})
	})
}

// TestOverPassAndLendWhileRedisIsDown: while Redis does not answer, the instances spend what they hold. Then nothing is
// marked, or with local what is above the part of each instance. A Redis that comes back with what it knew goes on to count
// there, so without a mark no more pass than the limit and what local adds to it.
func TestOverPassAndLendWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"allow", "local"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			f := startLenders(t, `"on_store_error": "`+policy+`", `, "", redistest.WithPersistence())
			counted := f.send(0, 100)["200"] + f.send(1, 100)["200"]
			if counted != 200 {
				t.Errorf("%v, want no marks below the limit", f.got)
			}
			f.redis.Kill()
			for i := range f.both {
				got := f.send(i, 500)
				if policy == "local" {
					counted += got["200"] - lenderLimit/2 // what it held
				}
				if marks := got["200 soft"] > 0; marks != (policy == "local") || got["200"]+got["200 soft"] != 500 {
					t.Errorf("while Redis is down, instance %d says %v", i, got)
				}
			}
			f.redis.Restart()
			for _, kept := range f.kept {
				patient.Until(t, "the store to answer", func() bool {
					_, err := kept.Take("soft", "another", 1)
					return err == nil
				})
			}
			for range 2 {
				for i := range f.both {
					counted += f.send(i, 500)["200"]
				}
			}
			if counted > lenderLimit {
				t.Errorf("%d requests are not marked, want at most %d", counted, lenderLimit)
			}
			for i := range f.both {
				if got := f.send(i, 50); got["200 soft"] != 50 {
					t.Errorf("above the limit, instance %d says %v", i, got)
				}
			}
		})
	}
}

// TestOverPassAndLendOfBannedKeys: what an operator bans is refused by all instances soon, whatever they hold of it.
func TestOverPassAndLendOfBannedKeys(t *testing.T) {
	f := startLenders(t, `"overrides": true, `, "")
	caddytest.Run(t, f.ctx[1])
	f.send(0, 100)
	f.send(1, 100)
	caddytest.Admin(t, http.MethodPut, "zones/soft/key/ban?key=a", `{"for": "20m"}`)
	for i := range f.both {
		patient.Until(t, "the ban", func() bool { return f.send(i, 1)["429"] == 1 })
		if got := f.send(i, 100); got["429"] != 100 {
			t.Errorf("a banned key: instance %d says %v", i, got)
		}
	}
	if f.got["200"] > lenderLimit {
		t.Errorf("%v, want at most %d without a mark", f.got, lenderLimit)
	}
}

// TestOverPassExcludesWithLend: options that exclude each other do so with lend, too.
func TestOverPassExcludesWithLend(t *testing.T) {
	for _, options := range []string{
		`"max_events": 9, "window": "1h", "dry_run": true`, `"max_events": 9, "window": "1h", "enforce": 10`,
		`"max_events": 9, "window": "1h", "ban": {"duration": "1m", "after": 5, "window": "1m"}`,
	} {
		_, err := caddytest.TryLoad(caddytest.Config(t), `{"rate_limits": {`+softZone("soft", `"lend": "1s", `+options)+`}}`)
		if err == nil || !strings.Contains(err.Error(), "over pass and ") {
			t.Errorf("%s: %v", options, err)
		}
	}
}
