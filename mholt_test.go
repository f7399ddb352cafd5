package caddyratelimit_test

import (
	"io"
	"math"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestConfigsOfMholt: configs of github.com/mholt/caddy-ratelimit, as its documentation
// and its users write them, load as they are and limit as they did. Each is a file in
// testdata/mholt: a Caddyfile or JSON, a line of ten hyphens, and what requests get:
//
//	GET /path [Name=value ...] -> 200*2 429 [retry=60] [body=text]
//
// Name is a header field, Host, or from for the client's address. retry is the window, which
// Retry-After is never above and below only by the time that has passed, or a range for
// the sake of jitter. body is that of the last answer.
func TestConfigsOfMholt(t *testing.T) {
	files := goldens(t, "mholt/*.txt")
	if len(files) < 10 {
		t.Errorf("%d configs", len(files))
	}
	for _, g := range files {
		t.Run(g.name(), func(t *testing.T) {
			address := newSite(t)
			runAt(t, address, g.input)
			began := time.Now()
			for line := range strings.Lines(g.want) {
				readStep(t, strings.TrimSpace(line)).check(t, address, began)
			}
		})
	}
}

// step is one line about requests.
type step struct {
	text, method, path, from string
	header                   http.Header
	statuses                 []int
	retry                    [2]int // from and to; 0 is any
	body                     string
}

func readStep(t *testing.T, text string) step {
	t.Helper()
	s := step{text: text, header: make(http.Header)}
	asked, answered, found := strings.Cut(text, " -> ")
	words := strings.Fields(asked)
	if !found || len(words) < 2 {
		t.Fatalf("not understood: %s", text)
	}
	s.method, s.path = words[0], words[1]
	for _, word := range words[2:] {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "from":
			s.from = value
		default:
			s.header.Set(name, value)
		}
	}
	answered, s.body, _ = strings.Cut(answered, " body=")
	for word := range strings.FieldsSeq(answered) {
		if wait, is := strings.CutPrefix(word, "retry="); is {
			least, most, isRange := strings.Cut(wait, "..")
			if !isRange {
				most = least
			}
			s.retry = [2]int{number(t, least), number(t, most)}
			continue
		}
		status, times, several := strings.Cut(word, "*")
		if !several {
			times = "1"
		}
		for range number(t, times) {
			s.statuses = append(s.statuses, number(t, status))
		}
	}
	return s
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// check sends the requests.
func (s step) check(t *testing.T, address string, began time.Time) {
	t.Helper()
	dialer := new(net.Dialer)
	if s.from != "" {
		if runtime.GOOS != "linux" {
			return // only Linux has all of 127.0.0.0/8 as addresses of this machine
		}
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(s.from)}
	}
	transport := &http.Transport{DialContext: dialer.DialContext}
	defer transport.CloseIdleConnections()
	var body []byte
	for i, want := range s.statuses {
		r, err := http.NewRequest(s.method, "http://"+address+s.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header, r.Host = s.header, s.header.Get("Host")
		answer, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err = io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		passed := time.Since(began)
		if s.retry[1] > 0 && passed >= time.Duration(s.retry[0])*time.Second {
			t.Logf("%s: this machine is too slow to tell", s.text)
			return
		}
		if answer.StatusCode != want {
			t.Fatalf("%s: request %d: status %d", s.text, i+1, answer.StatusCode)
		}
		retry, err := strconv.Atoi(answer.Header.Get("Retry-After"))
		switch {
		case want != http.StatusTooManyRequests && err == nil, want == http.StatusTooManyRequests && err != nil:
			t.Errorf("%s: status %d with Retry-After %q", s.text, want, answer.Header.Get("Retry-After"))
		case err == nil && s.retry[1] > 0 && (retry > s.retry[1] || float64(retry) < math.Ceil(float64(s.retry[0])-passed.Seconds())):
			t.Errorf("%s: Retry-After is %d", s.text, retry)
		}
	}
	if s.body != "" && string(body) != s.body {
		t.Errorf("%s: body %q", s.text, body)
	}
}
