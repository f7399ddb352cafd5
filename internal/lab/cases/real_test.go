package cases_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// randomHandler returns a rate limit handler with up to three zones, in JSON.
func randomHandler(r *rand.Rand) string {
	algorithms := []string{
		`"algorithm": "sliding_window_log"`, `"algorithm": "sliding_window_counter"`, `"algorithm": "token_bucket"`,
		`"algorithm": "token_bucket", "burst": 7`, `"algorithm": "token_bucket", "refill": "interval"`, `"algorithm": "leaky_bucket"`,
		`"algorithm": "fixed_window"`, `"algorithm": "fixed_window", "align": "first_request"`,
	}
	keys := []string{`"{http.request.header.X-Key}"`, `"{http.request.uri.path}"`, `""`}
	more := []string{
		"", "", `, "match": [{"path": ["/a"]}]`, `, "exempt": [{"path": ["/b"]}]`, `, "block": [{"path": ["/c"], "header": {"X-Key": ["k1"]}}]`,
		`, "missing_key": "reject"`, `, "cost": 2`, `, "enforce": 0`, `, "charge": {"status": ["401"]}`, `, "charge": {"header": "X-Cost"}`,
		`, "ban": {"duration": "3s", "after": 3, "window": "5s"}`, `, "max_wait": "2s"`,
	}
	var zones []string
	for i := range 1 + r.IntN(3) {
		zones = append(zones, fmt.Sprintf(`"z%d": {"key": %s, "max_events": %d, "window": "%ds", %s%s}`,
			i, keys[r.IntN(len(keys))], 1+r.IntN(6), 1+r.IntN(5), algorithms[r.IntN(len(algorithms))], more[r.IntN(len(more))]))
	}
	return `{"rate_limits": {` + strings.Join(zones, ", ") + `}}`
}

// step is a request, some time after the one before.
type step struct {
	after          time.Duration
	url, key, cost string
	status         int    // that the upstream answers
	got            string // what is expected, once it is known
	code           int
}

// String returns the step as a file of cases has it.
func (s *step) String() string {
	line := fmt.Sprintf("after %s\n\tGET %s answer %d any", s.after, s.url, s.status)
	if s.key != "" {
		line += " header X-Key " + s.key
	}
	if s.cost != "" {
		line += " answer_header X-Cost " + s.cost
	}
	return "\t" + line + s.got + "\n"
}

// randomSteps returns requests with times between them, of at least a gap.
func randomSteps(r *rand.Rand, n int, gap time.Duration) (steps []*step) {
	paths := []string{"/a", "/b", "/c"}
	for range n {
		s := new(step)
		if gap > 0 || r.IntN(3) > 0 {
			s.after = gap + time.Duration(r.IntN(20))*100*time.Millisecond
		}
		s.url, s.status = "http://localhost:8080"+paths[r.IntN(len(paths))], []int{200, 401, 500}[r.IntN(3)]
		if k := r.IntN(3); k > 0 {
			s.key = fmt.Sprintf("k%d", k)
		}
		if r.IntN(2) > 0 {
			s.cost = fmt.Sprint(r.IntN(4))
		}
		steps = append(steps, s)
	}
	return steps
}

// serveReally sends the requests to the handler itself, which keeps time by the clock of a bubble, and notes its
// answers as what is expected. It reports whether the limits may be loaded.
func serveReally(t *testing.T, handler string, steps []*step) (valid bool) {
	ctx := caddytest.Config(t)
	h, err := caddytest.TryLoad(ctx, handler)
	if err != nil {
		return false
	}
	defer caddytest.CleanUp(t, h)
	caddytest.Started(t, ctx)
	for _, s := range steps {
		time.Sleep(s.after)
		synctest.Wait()
		go func() {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, s.url, nil)
			if s.key != "" {
				r.Header.Set("X-Key", s.key)
			}
			r.RemoteAddr = "127.0.0.1:50000"
			r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
			err := h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
				if s.cost != "" {
					w.Header().Set("X-Cost", s.cost)
				}
				w.WriteHeader(s.status)
				return nil
			}))
			if s.code = w.Code; err != nil {
				s.code = caddytest.StatusOf(err)
			}
			s.got = fmt.Sprint(" status ", s.code)
			for _, name := range []string{"Retry-After", "RateLimit", "RateLimit-Policy", "X-Cost"} {
				if value := w.Header().Get(name); value != "" {
					s.got += fmt.Sprintf(" response %s %q", name, value)
				} else {
					s.got += fmt.Sprintf(" response %s none", name)
				}
			}
		}()
		synctest.Wait()
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	return true
}

// TestCasesAndRealRequests: random requests to random limits are answered alike by cases and by the handler as it
// serves requests: with the same status, Retry-After and other headers of limits, 2,000 times.
func TestCasesAndRealRequests(t *testing.T) {
	const schedules, requests = 100, 20
	statuses := make(map[int]int)
	for seed, done := uint64(0), 0; done < schedules; seed++ {
		r := rand.New(rand.NewPCG(seed, 36))
		handler, gap := randomHandler(r), time.Duration(0)
		if strings.Contains(handler, "max_wait") {
			gap = 2100 * time.Millisecond // which of several that wait is the first to pass is not said
		}
		steps := randomSteps(r, requests, gap)
		valid := false
		synctest.Test(t, func(t *testing.T) { valid = serveReally(t, handler, steps) })
		if !valid {
			continue
		}
		done++
		config := fmt.Appendf(nil, `{"apps": {"http": {"servers": {"s": {"listen": [":8080"], "automatic_https": {"disable": true}, "routes": [{"handle": [{"handler": "rate_limit", %s]}]}}}}}`, handler[1:])
		var text strings.Builder
		for _, s := range steps {
			text.WriteString(s.String())
		}
		f := parse(t, fmt.Sprintf("case \"seed %d\" {\n%s}\n", seed, text.String()))
		for _, result := range run(t, config, f) {
			for _, failure := range result.Failures {
				t.Errorf("%s: %s: Caddy answered %s, the case found %s\n%q\n%s", result.Name, failure.Step, failure.Expected, failure.Got, failure.State, handler)
			}
		}
		for _, s := range steps {
			statuses[s.code]++
		}
	}
	if statuses[http.StatusTooManyRequests] < 200 || statuses[http.StatusOK] < 200 || statuses[http.StatusForbidden] < 5 {
		t.Errorf("the answers were %v, so this test says little", statuses)
	}
}
