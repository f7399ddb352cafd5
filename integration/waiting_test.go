package integration_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestSlots: no more requests of a fleet are with the upstream than there are slots. One that waits gets the slot of one that
// ends or whose client leaves, and one whose client leaves while it waits takes none. A reload takes no slot away.
func TestSlots(t *testing.T) {
	b := harness.StartBackend(t, harness.AnswerAsAsked)
	store := harness.SharedStore(t)
	config := harness.Caddyfile("", harness.Limited("slots", "algorithm concurrency\nevents 3\nlease 10m", store, "reverse_proxy {$UPSTREAM}")+
		harness.Limited("waits", "algorithm concurrency\nevents 1\nlease 10m\nmax_wait 10m", store, "reverse_proxy {$UPSTREAM}"))
	fleet, client := harness.Three(t, config, b.Variable()), harness.NewClient(t, "")
	var held []*harness.Pending
	for i := range 3 {
		held = append(held, fleet[i].Begin("/slots", "X-Gate", "end"))
	}
	b.AwaitInside(t, 3)
	for _, s := range fleet {
		if a := s.Get(client, "/slots"); a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") != "1" {
			t.Errorf("status %d, %v", a.Status, a.Header)
		}
	}
	fleet[0].MustLoad(strings.ReplaceAll(config, "{$UPSTREAM}", b.Address) + "\n# changed\n")
	if left := fleet[0].Left("slots"); left != 0 {
		t.Errorf("%d left after a reload", left)
	}
	held[1].Leave()
	fleet[2].AwaitLeft("slots", 1)
	b.Open("end")
	fleet[1].AwaitLeft("slots", 3)

	first := fleet[0].Begin("/waits", "X-Gate", "first")
	b.AwaitInside(t, 1)
	leaver := fleet[1].Begin("/waits", "X-Gate", "next")
	fleet[1].AwaitWaiting(1)
	leaver.Leave()
	fleet[1].AwaitWaiting(0)
	next := fleet[1].Begin("/waits", "X-Gate", "next")
	fleet[1].AwaitWaiting(1)
	b.Open("first")
	b.Open("next")
	for _, p := range []*harness.Pending{first, next} {
		if a := p.Result(); a.Status != http.StatusOK {
			t.Errorf("status %d", a.Status)
		}
	}
	fleet[2].AwaitLeft("waits", 1)
	if _, most := b.Now(); most != 3 {
		t.Errorf("%d were with the upstream at once, want 3", most)
	}
}

// TestQueue: of a bucket of three that leaks one per hour, one request passes, two wait, and the next is refused, until a client
// leaves the queue.
func TestQueue(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			// A refusal is remembered for a while, even if another request gives a turn back.
			store = strings.Replace(store, "store redis {", "store redis {\ndeny_cache off", 1)
			fleet := harness.Three(t, harness.Caddyfile("", harness.Limited("queue", "algorithm leaky_bucket 1/1h\nmode queue\nburst 3", store, "respond ok")))
			if name == "memory" {
				fleet = fleet[:1]
			}
			s, other, client := fleet[0], fleet[len(fleet)-1], harness.NewClient(t, "")
			if a := s.Get(client, "/queue"); a.Status != http.StatusOK {
				t.Fatalf("status %d", a.Status)
			}
			s.Begin("/queue")
			s.AwaitLeft("queue", 1)
			last := other.Begin("/queue")
			s.AwaitLeft("queue", 0)
			if a := s.Get(client, "/queue"); a.Status != http.StatusTooManyRequests {
				t.Errorf("status %d with a full queue", a.Status)
			}
			last.Leave()
			s.AwaitLeft("queue", 1)
		})
	}
}

// TestAdaptive: while the upstream has as many requests as it may, others wait for a slot, until one is free or a reload allows more.
// One that gets none in time is answered 503, which costs nothing in a zone that does not charge it. A connection that is upgraded
// holds no slot.
func TestAdaptive(t *testing.T) {
	b := harness.StartBackend(t, harness.AnswerAsAsked)
	site := func(most int, wait string) string {
		return harness.Caddyfile("", fmt.Sprintf(`route {
			rate_limit {
				zone served {
					rate 10/1h
					charge {
						status 2xx
					}
				}
			}
			adaptive_concurrency {
				min %d
				max %[1]d
				max_wait %s
			}
			reverse_proxy %s
		}`, most, wait, b.Address))
	}
	s := harness.One(t, site(1, "10m"))
	waiting := func() int {
		var limits []struct{ Waiting int }
		s.Ask("/rate_limit/adaptive", &limits)
		return limits[0].Waiting
	}
	first := s.Begin("/", "X-Gate", "open")
	b.AwaitInside(t, 1)
	second := s.Begin("/", "X-Gate", "open")
	patient.UntilEqual(t, "requests that wait", waiting, 1)
	s.MustLoad(site(2, "10m"))
	b.AwaitInside(t, 2)
	third := s.Begin("/", "X-Gate", "open")
	patient.UntilEqual(t, "requests that wait after a reload", waiting, 1)
	b.Open("open")
	for _, p := range []*harness.Pending{first, second, third} {
		if a := p.Result(); a.Status != http.StatusOK {
			t.Errorf("status %d", a.Status)
		}
	}
	s.MustLoad(site(1, "10ms"))
	if _, status := s.Upgrade(t); status != http.StatusSwitchingProtocols {
		t.Errorf("upgrade: status %d", status)
	}
	s.Begin("/", "X-Gate", "held")
	b.AwaitInside(t, 2)
	if a := s.Get(harness.NewClient(t, ""), "/"); a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, %v", a.Status, a.Header)
	}
	s.AwaitUsed("three answers, and one that is booked", "served", "", 4)
}

// TestOnStoreError: while Redis does not answer, the zone refuses, passes or goes on with its share, as it says, and counts
// again when Redis is back.
func TestOnStoreError(t *testing.T) {
	proxy := faultproxy.Start(t, redistest.Shared(t).Addr())
	store, site := harness.SharedStore(t, proxy.Addr()), ""
	for _, policy := range []string{"deny", "allow", "local"} {
		site += harness.Limited(policy, "key {header.Key}\nrate 3/1h\non_store_error "+policy, store, "respond ok")
	}
	s, client := harness.One(t, harness.Caddyfile("", site)), harness.NewClient(t, "")
	if n := s.Admitted(client, 1, "/deny"); n != 1 {
		t.Fatalf("%d of 1 admitted", n)
	}
	proxy.Forward(caddytest.FreeAddress(t))
	proxy.Inject(func(string) faultproxy.Fault { return faultproxy.CutBefore })
	for policy, want := range map[string][]int{"deny": {503, 503, 503, 503}, "allow": {200, 200, 200, 200}, "local": {200, 200, 200, 429}} {
		for i, status := range want {
			if a := s.Get(client, "/"+policy, "Key", "away"); a.Status != status {
				t.Errorf("%s: answer %d is %d, want %d", policy, i+1, a.Status, status)
			}
		}
	}
	s.AwaitLog(`"level":"error"`, harness.OurLogger)
	proxy.Forward(redistest.Shared(t).Addr())
	proxy.Inject(nil)
	patient.UntilEqual(t, "the first answer of Redis", func() int { return s.Get(client, "/deny").Status }, http.StatusOK)
	if n := s.Admitted(client, 3, "/deny"); n != 1 {
		t.Errorf("%d more admitted, want 1 of 3 in all", n)
	}
}

// TestRefusals: in every version of HTTP and in every method, a refusal says which limit it is and how long to wait, and
// HEAD has no body. Fields of other handlers stay.
func TestRefusals(t *testing.T) {
	config, versions := harness.EveryVersion(t, "", `
		header Access-Control-Allow-Origin *
		header >X-Late late
		encode gzip
		rate_limit {
			zone methods {
				key  {header.X-Run}-{method}
				rate 1/1h
			}
			headers draft-11 x-ratelimit
			on_limit problem
		}
		respond ok`)
	s := harness.One(t, config)
	for _, to := range versions(s) {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost} {
			var answer *http.Response
			var body string
			for began := time.Now(); answer == nil || time.Since(began) > time.Second; { // a wait is the same in whole seconds then
				began = time.Now()
				for range 2 {
					answer, body = fetch(t, to.Client, method, to.URL, "X-Run", fmt.Sprint(to.Major, began))
				}
			}
			what := fmt.Sprintf("HTTP/%d %s", to.Major, method)
			if answer.StatusCode != http.StatusTooManyRequests || answer.ProtoMajor != to.Major {
				t.Errorf("%s: status %d over HTTP/%d", what, answer.StatusCode, answer.ProtoMajor)
			}
			for field, want := range map[string]string{
				"RateLimit": `"methods";r=0;t=3600`, "RateLimit-Policy": `"methods";q=1;w=3600`, "Retry-After": "3600", "X-RateLimit-Remaining": "0",
				"Access-Control-Allow-Origin": "*", "X-Late": "late", "Content-Type": "application/problem+json",
			} {
				if got := answer.Header.Values(field); !slices.Equal(got, []string{want}) {
					t.Errorf("%s: %s %q, want %q", what, field, got, want)
				}
			}
			if has := strings.Contains(body, `"violated-policies":["methods"]`); has == (method == http.MethodHead) {
				t.Errorf("%s: body %q", what, body)
			}
		}
	}
}

// fetch sends a request, and returns the answer and its body.
func fetch(t *testing.T, client *http.Client, method, url string, header ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

// TestErrorRoutes: a refusal is an HTTP error, so error routes can answer it, also those of a subroute for a named route that
// it invokes. A matcher that fails does not let a request pass.
func TestErrorRoutes(t *testing.T) {
	s := harness.One(t, strings.Replace(harness.Caddyfile("", `
		handle /teapot {
			rate_limit {
				zone teas {
					rate 0/1h
				}
				status 418
			}
		}
		handle /invoked {
			invoke limited
		}
		handle /fails {
			rate_limit {
				zone large {
					match expression `+"`int({header.X-Size}) > 100`"+`
					rate  0/1h
				}
			}
			respond ok
		}
		handle_errors 418 429 {
			respond "{http.error.status_code} {http.rate_limit.exceeded.name}"
		}`), ":80 {", "&(limited) {\nrate_limit {\nzone invoked {\nrate 0/1h\n}\n}\n}\n:80 {", 1))
	client := harness.NewClient(t, "")
	for _, step := range []struct {
		path, size string
		status     int
		body       string
	}{
		{"/teapot", "", 418, "418 teas"},
		{"/invoked", "", 429, "429 invoked"},
		{"/fails", "7", 200, "ok"},
		{"/fails", "200", 429, "429 large"},
		{"/fails", "many", 500, ""},
	} {
		if a := s.Get(client, step.path, "X-Size", step.size); a.Status != step.status || a.Body != step.body {
			t.Errorf("%s: status %d, body %q, want %d %q", step.path, a.Status, a.Body, step.status, step.body)
		}
	}
}

// TestObserved: the metrics, the access log, the module's log and the stream of decisions say the outcome of each request.
func TestObserved(t *testing.T) {
	s := harness.One(t, harness.Caddyfile("", "log\n"+harness.Limited("seen", "key {header.User}\nrate 1/1000h", harness.Memory, "respond ok")))
	client := harness.NewClient(t, "")
	for _, user := range []string{"a", "a", "b"} {
		s.Get(client, "/seen", "User", user)
	}
	_, got := s.Scrape()
	for sample, want := range map[string]float64{`requests_total{zone="seen"}`: 3, `declined_requests_total{zone="seen"}`: 1, `decisions_total{outcome="limited",zone="seen"}`: 1} {
		if got[sample] != want {
			t.Errorf("%s is %v, want %v", sample, got[sample], want)
		}
	}
	s.AwaitLog(`"status":200`, `"rate_limit":{"outcome":"allowed","zone":"seen","limit":1,"remaining":0,"cost":1}`)
	s.AwaitLog(`"status":429`, `"rate_limit":{"outcome":"limited","zone":"seen","limit":1,"remaining":0,"cost":1,"retry_after":3`)
	s.AwaitLog(`"logger":"`+harness.OurLogger, `"msg":"rate limit exceeded","zone":"seen"`)
}
