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

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/cases"
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

// randomSteps returns requests with times between them, of at least a gap.
func randomSteps(r *rand.Rand, n int, gap time.Duration) (steps []cases.Step) {
	paths := []string{"/a", "/b", "/c"}
	for range n {
		if gap > 0 || r.IntN(3) > 0 {
			steps = append(steps, cases.Step{Move: &cases.Move{After: gap + time.Duration(r.IntN(20))*100*time.Millisecond}})
		}
		request := &cases.Request{Request: adminapi.Request{Method: http.MethodGet, URL: "http://localhost:8080" + paths[r.IntN(len(paths))]}, Repeat: 1, Answer: &cases.Answer{Status: []int{200, 401, 500}[r.IntN(3)], Header: make(http.Header)}}
		if k := r.IntN(3); k > 0 {
			request.Header = []string{fmt.Sprintf("X-Key: k%d", k)}
		}
		if r.IntN(2) > 0 {
			request.Answer.Header.Set("X-Cost", fmt.Sprint(r.IntN(4)))
		}
		request.Expect.Any = true
		steps = append(steps, cases.Step{Request: request})
	}
	return steps
}

// serveReally sends the requests to the handler itself, which keeps time by the clock of a bubble, and notes its
// answers as what is expected. It reports whether the limits may be loaded.
func serveReally(t *testing.T, handler string, steps []cases.Step) (valid bool) {
	ctx := caddytest.Config(t)
	h, err := caddytest.TryLoad(ctx, handler)
	if err != nil {
		return false
	}
	defer caddytest.CleanUp(t, h)
	caddytest.Started(t, ctx)
	for _, s := range steps {
		if s.Move != nil {
			time.Sleep(s.Move.After)
			synctest.Wait()
			continue
		}
		go func() {
			w, r := httptest.NewRecorder(), httptest.NewRequest(s.Request.Method, s.Request.URL, nil)
			for _, field := range s.Request.Header {
				name, value, _ := strings.Cut(field, ": ")
				r.Header.Set(name, value)
			}
			r.RemoteAddr = "127.0.0.1:50000"
			r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
			err := h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
				for name, values := range s.Request.Answer.Header {
					w.Header()[name] = values
				}
				w.WriteHeader(s.Request.Answer.Status)
				return nil
			}))
			e := &s.Request.Expect
			if e.Status = w.Code; err != nil {
				e.Status = caddytest.StatusOf(err)
			}
			for _, name := range []string{"Retry-After", "RateLimit", "RateLimit-Policy", "X-Cost"} {
				value := w.Header().Get(name)
				e.Header = append(e.Header, cases.Field{Name: name, Value: value, Absent: value == ""})
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
		f := &cases.File{Name: "random.test", Cases: []*cases.Case{{Name: fmt.Sprint("seed ", seed), Steps: steps}}}
		for _, result := range run(t, config, f) {
			for _, failure := range result.Failures {
				t.Errorf("%s: %s: Caddy answered %s, the case found %s\n%q\n%s", result.Name, failure.Step, failure.Expected, failure.Got, failure.State, handler)
			}
		}
		for _, s := range steps {
			if s.Request != nil {
				statuses[s.Request.Expect.Status]++
			}
		}
	}
	if statuses[http.StatusTooManyRequests] < 200 || statuses[http.StatusOK] < 200 || statuses[http.StatusForbidden] < 5 {
		t.Errorf("the answers were %v, so this test says little", statuses)
	}
}
