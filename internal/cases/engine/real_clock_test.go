package engine_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/cases"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// schedule is random requests to random limits, which a Caddy serves below a host of its own.
type schedule struct {
	handler, host string
	steps         []cases.Step
	began, ended  []time.Time // of each request
}

// newSchedule returns the schedule of a seed, or nil if its limits cannot be loaded.
func newSchedule(t *testing.T, seed, requests int) *schedule {
	r := rand.New(rand.NewPCG(uint64(seed), 63))
	s := &schedule{host: fmt.Sprintf("s%d.test", seed), handler: strings.ReplaceAll(randomHandler(r), `"z`, fmt.Sprintf(`"s%dz`, seed))}
	h, err := caddytest.TryLoad(caddytest.Config(t), s.handler)
	if err != nil {
		return nil
	}
	caddytest.CleanUp(t, h)
	s.steps = randomSteps(r, requests, 37*time.Millisecond)
	return s
}

// send sends the requests to a Caddy, and notes its answers, and when it may have decided.
func (s *schedule) send(t *testing.T, address string) {
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	for _, step := range s.steps {
		if step.Move != nil {
			time.Sleep(step.Move.After)
			continue
		}
		of := step.Request
		r, err := http.NewRequest(of.Method, strings.Replace(of.URL, "localhost:8080", address, 1), nil)
		if err != nil {
			t.Error(err)
			return
		}
		r.Host = s.host
		for _, field := range of.Header {
			name, value, _ := strings.Cut(field, ": ")
			r.Header.Set(name, value)
		}
		r.Header.Set("X-Answer", strconv.Itoa(of.Answer.Status))
		r.Header.Set("X-Says", of.Answer.Header.Get("X-Cost"))
		began := time.Now()
		response, err := client.Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		s.began, s.ended = append(s.began, began), append(s.ended, time.Now())
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		e := &of.Expect
		e.Status = response.StatusCode
		for _, name := range []string{"Retry-After", "RateLimit", "RateLimit-Policy", "X-Cost"} {
			value := response.Header.Get(name)
			e.Header = append(e.Header, cases.Field{Name: name, Value: value, Absent: value == ""})
		}
	}
}

// differs returns what a case finds otherwise than the Caddy did, if each request is decided at some part of the time
// that it took.
func (s *schedule) differs(t *testing.T, part func() float64) (all []cases.Failure) {
	var steps []cases.Step
	for _, step := range s.steps {
		if step.Move == nil {
			n := len(steps) / 2
			at := s.began[n].Add(time.Duration(part() * float64(s.ended[n].Sub(s.began[n]))))
			steps = append(steps, cases.Step{Move: &cases.Move{At: at}}, step)
		}
	}
	f := &cases.File{Name: "random.test", Cases: []*cases.Case{{Name: s.host, Steps: steps}}}
	for _, result := range run(t, fmt.Appendf(nil, `{"apps": {"http": {"servers": {"s": {"listen": [":8080"], "automatic_https": {"disable": true}, "routes": [{"handle": [{"handler": "rate_limit", %s]}]}}}}}`, s.handler[1:]), f) {
		all = append(all, result.Failures...)
	}
	return all
}

// TestCasesAndRealClock: cases find what a Caddy has answered on the real clock, over a socket, to 2,000 random requests
// to random limits with windows of seconds. A request is decided at some moment between its begin and its end, of which
// some are tried, because a charge may leave its window just then.
func TestCasesAndRealClock(t *testing.T) {
	if !deep.Run() {
		t.Skip("it takes as long as its requests: make deep runs it, and TestCasesAndRealRequests is the same without a clock")
	}
	const schedules, requests, tries = 100, 20, 100
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cost := r.Header.Get("X-Says"); cost != "" {
			w.Header().Set("X-Cost", cost)
		}
		status, _ := strconv.Atoi(r.Header.Get("X-Answer"))
		w.WriteHeader(status)
	}))
	defer upstream.Close()
	var all []*schedule
	var routes []string
	for seed := 0; len(all) < schedules; seed++ {
		s := newSchedule(t, seed, requests)
		if s == nil || strings.Contains(s.handler, "max_wait") {
			continue // a request that waits is decided twice
		}
		all = append(all, s)
		routes = append(routes, fmt.Sprintf(`{"match": [{"host": [%q]}], "handle": [{"handler": "rate_limit", %s, {"handler": "reverse_proxy", "upstreams": [{"dial": %q}]}]}`,
			s.host, s.handler[1:], upstream.Listener.Addr().String()))
	}
	address := caddytest.FreeAddress(t)
	caddytest.RunConfig(t, address, `{"apps": {"http": {"servers": {"s": {"routes": [`+strings.Join(routes, ", ")+`]}}}}}`)
	var sending sync.WaitGroup
	for _, s := range all {
		sending.Go(func() { s.send(t, address) })
	}
	sending.Wait()
	if t.Failed() {
		return
	}
	statuses := make(map[int]int)
	for _, s := range all {
		var failures []cases.Failure
		moments := rand.New(rand.NewPCG(1, 1))
		for try := range tries {
			failures = s.differs(t, func() float64 {
				if try == 0 {
					return 0.5
				}
				return moments.Float64()
			})
			if len(failures) == 0 {
				break
			}
		}
		for _, failure := range failures {
			t.Errorf("%s: %s: Caddy answered %s, the case found %s\n%q\n%s", s.host, failure.Step, failure.Expected, failure.Got, failure.State, s.handler)
		}
		for _, step := range s.steps {
			if step.Request != nil {
				statuses[step.Request.Expect.Status]++
			}
		}
	}
	if statuses[http.StatusTooManyRequests] < 200 || statuses[http.StatusOK] < 200 {
		t.Errorf("the answers were %v, so this test says little", statuses)
	}
	t.Logf("the answers were %v", statuses)
}
