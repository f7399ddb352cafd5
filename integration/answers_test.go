package integration_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

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
			harness.WithinASecond(t, func(try string) {
				for range 2 {
					answer, body = fetch(t, to.Client, method, to.URL, "X-Run", fmt.Sprint(to.Major, try))
				}
			})
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
	s := harness.One(t, harness.Caddyfile("", "log\nmetrics /metrics\n"+harness.Limited("seen", "key {header.User}\nrate 1/1000h", harness.Memory, "respond ok")))
	client := harness.NewClient(t, "")
	for _, user := range []string{"a", "a", "b"} {
		s.Get(client, "/seen", "User", user)
	}
	got := harness.Nonzero(t, s.Scrape(client))
	for sample, want := range map[string]float64{`requests_total{zone="seen"}`: 3, `declined_requests_total{zone="seen"}`: 1, `decisions_total{outcome="limited",zone="seen"}`: 1} {
		if got[sample] != want {
			t.Errorf("%s is %v, want %v", sample, got[sample], want)
		}
	}
	s.AwaitLog(`"status":200`, `"rate_limit":{"outcome":"allowed","zone":"seen","limit":1,"remaining":0,"cost":1}`)
	s.AwaitLog(`"status":429`, `"rate_limit":{"outcome":"limited","zone":"seen","limit":1,"remaining":0,"cost":1,"retry_after":3`)
	s.AwaitLog(`"logger":"`+harness.OurLogger, `"msg":"rate limit exceeded","zone":"seen"`)
}
