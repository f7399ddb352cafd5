package caddyratelimit_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestConfigsOfMholt: configs of github.com/mholt/caddy-ratelimit load as they are, and limit requests
// as that module does. Each case of testdata/mholt.txtar is a config from its documentation or its users, a
// line of ten hyphens, and the responses to requests:
//
//	GET /path [Name=value ...] -> 200*2 429 [retry=60] [body=text]
//
// Name is a header, Host, or from for the client's address. retry is the window in seconds, or a
// range because of jitter: Retry-After is at most that, and less only by the time since the start. body
// is the body of the last response.
func TestConfigsOfMholt(t *testing.T) {
	configs := caddytest.Goldens(t, "testdata/mholt.txtar")
	if len(configs) < 10 {
		t.Errorf("%d configs, want at least 10", len(configs))
	}
	for _, g := range configs {
		t.Run(g.Name, func(t *testing.T) {
			address := caddytest.FreeAddress(t)
			caddytest.RunConfig(t, address, g.Input)
			began := time.Now()
			for line := range strings.Lines(g.Want) {
				readStep(t, strings.TrimSpace(line)).check(t, address, began)
			}
		})
	}
}

// step is a line with requests and the responses to them.
type step struct {
	text, method, path, from string
	header                   http.Header
	statuses                 []int
	retry                    [2]int // from and to; 0 allows any value
	body                     string
}

// readStep reads a line.
func readStep(t *testing.T, text string) step {
	t.Helper()
	s := step{text: text, header: make(http.Header)}
	request, responses, found := strings.Cut(text, " -> ")
	words := strings.Fields(request)
	if !found || len(words) < 2 {
		t.Fatalf("not a step: %s", text)
	}
	s.method, s.path = words[0], words[1]
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		s.header.Set(name, value)
	}
	s.from = s.header.Get("From")
	s.header.Del("From")
	responses, s.body, _ = strings.Cut(responses, " body=")
	for word := range strings.FieldsSeq(responses) {
		if wait, isRetry := strings.CutPrefix(word, "retry="); isRetry {
			_, _ = fmt.Sscanf(wait, "%d..%d", &s.retry[0], &s.retry[1])
			s.retry[1] = max(s.retry[0], s.retry[1])
			continue
		}
		status, times := 0, 1
		if _, _ = fmt.Sscanf(word, "%d*%d", &status, &times); status == 0 {
			t.Fatalf("not a status: %s", word)
		}
		s.statuses = append(s.statuses, slices.Repeat([]int{status}, times)...)
	}
	return s
}

// check sends the requests and compares the responses.
func (s step) check(t *testing.T, address string, began time.Time) {
	t.Helper()
	if s.from != "" && runtime.GOOS != "linux" {
		return // only on Linux are all of 127.0.0.0/8 addresses of this machine
	}
	transport := &http.Transport{DialContext: dialer(address, s.from)}
	defer transport.CloseIdleConnections()
	var body []byte
	for i, want := range s.statuses {
		r, err := http.NewRequest(s.method, "http://"+address+s.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header, r.Host = s.header, s.header.Get("Host")
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		passed := time.Since(began)
		if s.retry[1] > 0 && passed >= time.Duration(s.retry[0])*time.Second {
			t.Logf("%s: this machine is too slow for this check", s.text)
			return
		}
		if response.StatusCode != want {
			t.Fatalf("%s: request %d: status %d, want %d", s.text, i+1, response.StatusCode, want)
		}
		retry, err := strconv.Atoi(response.Header.Get("Retry-After"))
		switch {
		case want != http.StatusTooManyRequests && err == nil, want == http.StatusTooManyRequests && err != nil:
			t.Errorf("%s: status %d with Retry-After %q", s.text, want, response.Header.Get("Retry-After"))
		case err == nil && s.retry[1] > 0 && (retry > s.retry[1] || float64(retry) < math.Ceil(float64(s.retry[0])-passed.Seconds())):
			t.Errorf("%s: Retry-After is %d after %v", s.text, retry, passed)
		}
	}
	if s.body != "" && string(body) != s.body {
		t.Errorf("%s: body %q, want %q", s.text, body, s.body)
	}
}
