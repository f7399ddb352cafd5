package headers_test

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestRefusalsInEveryMethod: whatever answers a refusal, and in every method, also for a CORS
// preflight, fields that were set before stay, our fields are there once, and HEAD has no body.
func TestRefusalsInEveryMethod(t *testing.T) {
	t.Parallel()
	config := func(options, routes string) string {
		return harness.Caddyfile("", `
		header Access-Control-Allow-Origin https://app.example
		header Access-Control-Expose-Headers "RateLimit, Retry-After"
		encode gzip
		@preflight method OPTIONS
		rate_limit {
			zone methods {
				key    {header.X-Run}-{method}
				events 1
				window 1h
			}
			headers draft-10 x-ratelimit
			`+options+`
		}
		respond @preflight 204
		respond ok
		`+routes)
	}
	client := harness.NewClient(t, "")
	for name, c := range map[string]struct{ config, body string }{
		"bare":    {config("", ""), ""},
		"page":    {config("", "handle_errors {\nrespond \"{http.error.status_code} {http.rate_limit.exceeded.name} {http.rate_limit.retry_after}\"\n}"), "429 methods 3600"},
		"no page": {config("", "handle_errors 404 {\nrespond gone\n}"), ""},
		"problem": {config("on_limit problem", "handle_errors {\nrespond never\n}"), `"violated-policies":["methods"]`},
	} {
		s := harness.StartCaddy(t, c.config)
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost} {
			var answers [2]*http.Response
			var bodies [2]string
			harness.WithinASecond(t, func(try string) {
				for i := range answers {
					answers[i], bodies[i] = exchange(t, client, method, s.URL("/"), http.Header{
						"X-Run": {name + try}, "Origin": {"https://app.example"}, "Access-Control-Request-Method": {"POST"},
					})
				}
			})
			for i, answer := range answers {
				refused := i > 0
				want := http.StatusOK
				switch {
				case refused:
					want = http.StatusTooManyRequests
				case method == http.MethodOptions:
					want = http.StatusNoContent
				}
				header := answer.Header
				if answer.StatusCode != want || (header.Get("Retry-After") == "3600") != refused || (header.Get("X-RateLimit-Retry-After") == "3600") != refused {
					t.Errorf("%s, %s: status %d, %v", name, method, answer.StatusCode, header)
				}
				for field, value := range map[string]string{
					"Access-Control-Allow-Origin": "https://app.example", "Access-Control-Expose-Headers": "RateLimit, Retry-After",
					"RateLimit": `"methods";r=0;t=3600`, "RateLimit-Policy": `"methods";q=1;w=3600`, "X-RateLimit-Remaining": "0",
				} {
					if !slices.Equal(header.Values(field), []string{value}) {
						t.Errorf("%s, %s, %d: %s %q, want %q", name, method, want, field, header.Values(field), value)
					}
				}
				if text := bodies[i]; refused && (method == http.MethodHead && text != "" || method != http.MethodHead && !strings.Contains(text, c.body) || c.body == "" && text != "") {
					t.Errorf("%s, %s: body %q, want %q", name, method, text, c.body)
				}
			}
		}
	}
}

// exchange sends a request, and returns the answer and its body.
func exchange(t *testing.T, client *http.Client, method, url string, header http.Header) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
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

// TestUpstreamSpeaksWhereWeDoNot: if no limit was checked, the upstream's fields stay.
func TestUpstreamSpeaksWhereWeDoNot(t *testing.T) {
	t.Parallel()
	upstream := startLimitedUpstream(t)
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		rate_limit {
			zone unchecked {
				events 5
				window 1h
			}
			store redis {
				address 127.0.0.1:`+strconv.Itoa(redistest.FreePort(t))+`
			}
		}
		reverse_proxy `+upstream.Listener.Addr().String()))
	a := s.Get(harness.NewClient(t, ""), "/")
	if a.Status != http.StatusOK || !slices.Equal(a.Header.Values("RateLimit"), []string{`"upstream";r=7;t=1`}) || len(a.Header.Values("RateLimit-Policy")) != 2 {
		t.Errorf("status %d, %v", a.Status, a.Header)
	}
}
