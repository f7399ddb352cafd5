package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/engine"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

func init() { caddy.RegisterModule(new(truthUpstream)) }

// truthUpstream answers after a time and with a status that the request asks for.
type truthUpstream struct{}

func (*truthUpstream) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.truth_upstream", New: func() caddy.Module { return new(truthUpstream) }}
}

func (*truthUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	ms, _ := strconv.Atoi(r.Header.Get("X-Takes"))
	time.Sleep(time.Duration(ms) * time.Microsecond)
	status, _ := strconv.Atoi(r.Header.Get("X-Status"))
	w.WriteHeader(max(200, status))
	return nil
}

// truthZones are zones by the path that they limit: each algorithm, and each option that makes a
// decision depend on time, on the response or on other zones.
var truthZones = map[string]string{
	"log":        `"log": {"key": "{http.request.header.X-Client}", "max_events": 10, "window": "7s"}`,
	"counter":    `"counter": {"key": "{http.request.header.X-Client}", "max_events": 10, "window": "7s", "algorithm": "sliding_window_counter"}`,
	"bucket":     `"bucket": {"key": "{http.request.header.X-Client}", "max_events": 10, "window": "7s", "algorithm": "token_bucket", "burst": 4}`,
	"interval":   `"interval": {"key": "{http.request.header.X-Client}", "max_events": 10, "window": "7s", "algorithm": "token_bucket", "refill": "interval"}`,
	"meter":      `"meter": {"key": "{http.request.header.X-Client}", "max_events": 10, "window": "7s", "algorithm": "leaky_bucket", "burst": 3}`,
	"queue":      `"queue": {"key": "{http.request.header.X-Client}", "max_events": 10, "window": "7s", "algorithm": "leaky_bucket", "burst": 5, "mode": "queue", "max_wait": "3s"}`,
	"fixed":      `"fixed": {"key": "{http.request.header.X-Client}", "max_events": 10, "window": "7s", "algorithm": "fixed_window"}`,
	"minute":     `"minute": {"key": "{http.request.header.X-Client}", "max_events": 20, "window": "1m", "algorithm": "fixed_window", "align": "first_request"}`,
	"slots":      `"slots": {"key": "{http.request.header.X-Client}", "max_events": 2, "algorithm": "concurrency"}`,
	"slotwait":   `"slotwait": {"key": "{http.request.header.X-Client}", "max_events": 1, "algorithm": "concurrency", "max_wait": "700ms"}`,
	"wait":       `"wait": {"key": "{http.request.header.X-Alone}", "max_events": 2, "window": "5s", "max_wait": "2s"}`, // see serveTruth
	"ban":        `"ban": {"key": "{http.request.header.X-Client}", "max_events": 10, "window": "7s", "ban": {"duration": "20s", "after": 3, "window": "10s"}}`,
	"response":   `"response": {"key": "{http.request.header.X-Client}", "max_events": 5, "window": "7s", "charge": {"status": ["4xx"]}}`,
	"cost":       `"cost": {"key": "{http.request.header.X-Client}", "max_events": 20, "window": "7s", "cost": "{http.request.header.X-Cost}", "algorithm": "token_bucket"}`,
	"plan":       `"plan": {"key": "{http.request.header.X-Client}", "plan": {"of": "{http.request.header.X-Plan}", "default": "free", "plans": {"free": {"max_events": 5, "window": "7s"}, "pro": {"max_events": 20, "window": "7s", "algorithm": "token_bucket"}, "staff": {"unlimited": true}}}}`,
	"policies":   `"policies": {"key": "{http.request.header.X-Plan}", "max_events": 10, "window": "7s", "missing_key": "reject", "exempt": [{"header": {"X-Plan": ["staff"]}}], "block": [{"query": {"blocked": ["1"]}}]}`,
	"two":        `"two_a": {"key": "{http.request.header.X-Client}", "max_events": 10, "window": "7s"}, "two_b": {"max_events": 30, "window": "5s", "algorithm": "token_bucket"}`,
	"dry":        `"dry": {"key": "{http.request.header.X-Client}", "max_events": 5, "window": "7s", "enforce": 0}, "wet": {"key": "{http.request.header.X-Client}", "max_events": 8, "window": "7s"}`,
	"longslots":  `"longslots": {"key": "{http.request.header.X-Client}", "max_events": 2, "algorithm": "concurrency", "lease": "1s"}`,
	"header_429": `"header_429": {"key": "{http.request.header.X-Client}", "max_events": "{http.request.header.X-Quota} 6", "window": "7s"}`,
}

func truthConfig(log string) string {
	var routes []string
	for path, zones := range truthZones {
		routes = append(routes, fmt.Sprintf(`{"match": [{"path": ["/%s"]}], "handle": [{"handler": "rate_limit", "rate_limits": {%s}}], "terminal": false}`, path, zones))
	}
	return fmt.Sprintf(`{"apps": {"http": {"servers": {"main": {"listen": [":8080"], "logs": {}, "automatic_https": {"disable": true}, "routes": [%s,
		{"handle": [{"handler": "rate_limit", "rate_limits": {"all": {"key": "{http.request.remote.host}", "max_events": 1000, "window": "9s"}}}, {"handler": "truth_upstream"}]}]}}}},
		"logging": {"logs": {"default": {"level": "INFO", "writer": {"output": "file", "filename": %q, "roll": false}, "include": ["http.log.access"]}}}}`,
		strings.Join(routes, ",\n"), log)
}

// TestReplayAgainstTruth: a Caddy decides the requests of many clients and writes its access log. The
// replay of that log under the same config refuses the same requests, one by one. The time is that of
// a bubble, in which code takes no time: so what a request waits for is all that its duration has, and
// only the resolution of the log is left, a microsecond.
func TestReplayAgainstTruth(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "access.log")
	config := truthConfig(log)
	if _, err := caddytest.Config(t).App("tls"); err != nil { // has a goroutine that must not be in the bubble
		t.Fatal(err)
	}
	if open, _ := pool.InUse(); open > 0 {
		t.Fatalf("%d stores are open, whose time is not that of the bubble", open)
	}
	synctest.Test(t, func(t *testing.T) { serveTruth(t, config) })

	type answer struct {
		status int
		about  string
	}
	truth := make(map[string]answer)
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var l struct {
			Status  int `json:"status"`
			Request struct {
				URI string `json:"uri"`
			} `json:"request"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		truth[l.Request.URI] = answer{l.Status, line}
	}
	refused := make(map[string]int)
	requests := len(truth)
	err = engine.EachDecided([]byte(config), &replay.Options{Logs: []string{log}}, func(uri string, status int) {
		want, known := truth[uri]
		if !known {
			t.Errorf("no request %s", uri)
		}
		delete(truth, uri)
		path, _, _ := strings.Cut(strings.TrimPrefix(uri, "/"), "?")
		if status != 0 {
			refused[path]++
		}
		if was := want.status; was != status && (status != 0 || was == 429 || was == 401 || was == 403) {
			t.Errorf("%s: status %d, want %d", uri, status, was)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(truth) > 0 {
		t.Errorf("%d requests were not replayed", len(truth))
	}
	for path := range truthZones {
		if refused[path] == 0 && path != "dry" {
			t.Errorf("/%s: no request was refused, so the test says nothing", path)
		}
	}
	t.Logf("%d requests, refused: %v", requests, refused)
}

// serveTruth lets virtual clients send requests to a Caddy.
func serveTruth(t *testing.T, config string) {
	var c caddy.Config
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		t.Fatal(err)
	}
	c.Admin = &caddy.AdminConfig{Disabled: true}
	ctx, err := caddy.ProvisionContext(&c)
	if err != nil {
		t.Fatal(err)
	}
	app, err := ctx.App("http")
	if err != nil {
		t.Fatal(err)
	}
	server := app.(*caddyhttp.App).Servers["main"]
	limiters, err := ctx.App("rate_limit")
	if err != nil {
		t.Fatal(err)
	}
	caddytest.Started(t, ctx)
	paths := slices.Sorted(maps.Keys(truthZones))
	var clients sync.WaitGroup
	for n := range 25 {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 7))
			for i := range deep.Steps(160, 4000) {
				time.Sleep(time.Duration(random.ExpFloat64() * float64(100*time.Millisecond)))
				r := truthRequest(random, paths[random.IntN(len(paths))], n, i)
				serve := func() { server.ServeHTTP(httptest.NewRecorder(), r) }
				if strings.HasPrefix(r.URL.Path, "/wait") {
					serve() // requests that wait for the same moment race each other, in Caddy too
				} else {
					clients.Go(serve)
				}
			}
		})
	}
	clients.Wait()
	for _, h := range limiters.(interface{ Handlers() []*trial.Handler }).Handlers() {
		if err := h.Module.(caddy.CleanerUpper).Cleanup(); err != nil {
			t.Error(err)
		}
	}
}

// truthRequest makes request i of client n.
func truthRequest(random *rand.Rand, path string, n, i int) *http.Request {
	r := httptest.NewRequest(http.MethodGet, fmt.Sprintf("/%s?n=%d.%d", path, n, i), nil)
	if random.IntN(20) == 0 {
		r.RequestURI += "&blocked=1"
		r.URL.RawQuery += "&blocked=1"
	}
	r.RemoteAddr = fmt.Sprintf("203.0.113.%d:%d", n%5, 1024+i)
	takes := time.Duration(random.ExpFloat64() * float64(400*time.Millisecond))
	if path == "longslots" {
		takes *= 8
	}
	r.Header = http.Header{
		"X-Alone":  {strconv.Itoa(n)},
		"X-Client": {fmt.Sprint("client", n%4)},
		"X-Takes":  {strconv.FormatInt(takes.Microseconds(), 10)},
		"X-Status": {[]string{"200", "200", "404", "410"}[random.IntN(4)]},
		"X-Cost":   {strconv.Itoa(random.IntN(4))},
		"X-Quota":  {strconv.Itoa(3 + n%5)},
	}
	if plan := []string{"", "free", "pro", "staff"}[random.IntN(4)]; plan != "" {
		r.Header.Set("X-Plan", plan)
	}
	return r
}
