//go:build deep

// Package headers_test tests what responses tell clients, and clients and parsers of other people that read it.
package headers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/examples/apiclient"
	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// apiRequests are what each client sends, one after the other, and the statuses that it must return.
var apiRequests = []struct {
	method, path, want string
	// upstream is how often the upstream must have been asked for this path.
	upstream int
}{
	{"GET", "/used", "200", 1}, // the test has used what there was for a second
	{"GET", "/late", "429", 0}, // and for an hour
	{"GET", "/soon", "200", 2}, // after each, nothing remains for a second
	{"GET", "/soon", "200", 2},
	{"PUT", "/seconds", "200", 2},  // 429 with Retry-After: 1, once
	{"GET", "/date", "200", 2},     // 503 with a date, once
	{"POST", "/created", "503", 1}, // 503 always, and it may have been done
	{"GET", "/broken", "503", 4},   // 503 always
}

// fickle is an upstream that is not always there. It answers as apiRequests says.
type fickle struct {
	t  *testing.T
	mu sync.Mutex
	// asked is how often clients have asked for paths, and notBefore when they may ask again.
	asked     map[string]int
	notBefore map[string]time.Time
}

func (f *fickle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	uri, now := r.URL.RequestURI(), time.Now()
	f.asked[uri]++
	if now.Before(f.notBefore[uri]) {
		f.t.Errorf("%s comes %v too early", uri, f.notBefore[uri].Sub(now))
	}
	first := f.asked[uri] == 1
	switch path := r.URL.Path; {
	case path == "/seconds" && first:
		f.notBefore[uri] = now.Add(time.Second)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case path == "/date" && first:
		f.notBefore[uri] = now.Truncate(time.Second).Add(2 * time.Second)
		w.Header().Set("Retry-After", f.notBefore[uri].UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	case path == "/created", path == "/broken":
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// The rest of a program that sends its arguments with the client of the page: method, address, and so on.
var programs = map[string]func(arguments []string) *exec.Cmd{
	"python3": func(arguments []string) *exec.Cmd {
		const rest = `
import sys, urllib.request, client
c = client.Client()
for method, url in zip(sys.argv[1::2], sys.argv[2::2]):
    print(c.open(urllib.request.Request(url, method=method)).status)
`
		return exec.Command("python3", append([]string{"-B", "-c", rest}, arguments...)...)
	},
	"node": func(arguments []string) *exec.Cmd {
		const rest = `
import { Client } from "./client.mjs";
const c = new Client(), all = process.argv.slice(1);
for (let i = 0; i < all.length; i += 2) console.log((await c.fetch(all[i + 1], { method: all[i] })).status);
`
		return exec.Command("node", append([]string{"--input-type=module", "-e", rest, "--"}, arguments...)...)
	},
}

// TestClientsOfTheDocs runs the clients of docs/headers.md against a Caddy: they are never refused for what
// RateLimit has told them, come back when Retry-After says and no earlier, repeat only what may be repeated, and
// give up.
func TestClientsOfTheDocs(t *testing.T) {
	t.Parallel()
	upstream := &fickle{t: t, asked: make(map[string]int), notBefore: make(map[string]time.Time)}
	behind := httptest.NewServer(upstream)
	defer behind.Close()
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		rate_limit {
			zone soon {
				match path /soon
				key {query.client}
				rate 1/1s
			}
			zone used {
				match path /used
				key {query.client}
				rate 1/1s
			}
			zone late {
				match path /late
				key {query.client}
				rate 1/1h
			}
			`+harness.Memory+`
		}
		reverse_proxy `+strings.TrimPrefix(behind.URL, "http://")))
	t.Run("clients", func(t *testing.T) {
		t.Run("go", func(t *testing.T) {
			t.Parallel()
			client := new(apiclient.Client)
			upstream.check(t, s, "go", func(arguments []string) (statuses []string) {
				for i := 0; i < len(arguments); i += 2 {
					r, err := http.NewRequestWithContext(t.Context(), arguments[i], arguments[i+1], nil)
					if err != nil {
						t.Fatal(err)
					}
					response, err := client.Do(r)
					if err != nil {
						t.Fatal(err)
					}
					response.Body.Close()
					statuses = append(statuses, fmt.Sprint(response.StatusCode))
				}
				return statuses
			})
		})
		for name, program := range programs {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				harness.NeedProgram(t, name, "REQUIRE_"+strings.ToUpper(name))
				upstream.check(t, s, name, func(arguments []string) []string {
					cmd := program(arguments)
					cmd.Dir = "../../examples/apiclient"
					cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
					var complaint strings.Builder
					cmd.Stderr = &complaint
					output, err := cmd.Output()
					if err != nil {
						t.Fatalf("%v\n%s", err, &complaint)
					}
					return strings.Fields(string(output))
				})
			})
		}
	})
	var zones []struct{ Totals map[string]int }
	if s.Ask("/rate_limit/zones?zone=soon", &zones); len(zones) != 1 || zones[0].Totals["limited"] != 0 || zones[0].Totals["allowed"] == 0 {
		t.Errorf("requests of clients that know what remains: %v", zones)
	}
}

// check has a client send the requests.
func (f *fickle) check(t *testing.T, s *harness.Server, client string, send func(arguments []string) []string) {
	t.Helper()
	var arguments, want []string
	for _, r := range apiRequests {
		arguments = append(arguments, r.method, s.URL(r.path+"?client="+client))
		want = append(want, r.want)
	}
	for _, path := range []string{"/used", "/late"} {
		if got := s.Get(http.DefaultClient, path+"?client="+client); got.Status != 200 {
			t.Fatalf("%s: %d", path, got.Status)
		}
	}
	if got := send(arguments); !slices.Equal(got, want) {
		t.Errorf("the client returns %v, want %v", got, want)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range apiRequests {
		uri, asked := r.path+"?client="+client, r.upstream
		if r.path == "/used" || r.path == "/late" {
			asked++ // by the test
		}
		if f.asked[uri] != asked {
			t.Errorf("the upstream is asked %d times for %s, want %d", f.asked[uri], uri, asked)
		}
	}
}
