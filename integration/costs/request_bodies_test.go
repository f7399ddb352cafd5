//go:build deep

package costs_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// digest answers with the length and the digest of the body that it gets, or with how it fails.
func digest(_ *harness.Backend, w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "" {
		harness.AnswerAsAsked(nil, w, r)
		return
	}
	hash := sha256.New()
	n, err := io.Copy(hash, r.Body)
	fmt.Fprintf(w, "%d %d %x %v", r.ContentLength, n, hash.Sum(nil)[:8], err)
}

// digestOf is the answer of digest to a body, of which the length is known or not.
func digestOf(body string, length int) string {
	sum := sha256.Sum256([]byte(body))
	return fmt.Sprintf("%d %d %x <nil>", length, len(body), sum[:8])
}

// TestRequestBodiesPass: a body that was looked at reaches the upstream unchanged in every version of
// HTTP, and with Expect: 100-continue. One that takes too long is refused, and also one that is too large,
// unless it has a price. An upgrade is charged what was booked.
func TestRequestBodiesPass(t *testing.T) {
	t.Parallel()
	b := harness.StartBackend(t, digest)
	s, versions := harness.StartEveryVersion(t, "", `
		rate_limit {
			zone slow {
				match        path /slow
				key          {header.X-Client}
				events       100000
				window       1h
				cost_request json max_tokens {
					within 100ms
				}
			}
			zone tokens {
				match        not path /slow
				key          {header.X-Client}
				algorithm    fixed_window 100000/1000h
				align        first_request
				cost         10
				cost_request json max_tokens {
					max_body 100KB
					within   1m
				}
				cost_response json usage.total_tokens
			}
			zone priced {
				match        path /priced
				key          {header.X-Client}
				algorithm    fixed_window 100000/1000h
				align        first_request
				cost         10
				cost_request json max_tokens {
					max_body   100KB
					unreadable 7000
				}
			}
		}
		reverse_proxy {$UPSTREAM}`, b.Variable())
	small := `{"max_tokens":300,"prompt":"` + strings.Repeat("words ", 10_000) + `"}`
	large := `{"max_tokens":300,"prompt":"` + strings.Repeat("words ", 20_000) + `"}`
	for _, to := range versions {
		for _, known := range []bool{false, true} {
			post := func(path, body string, header ...string) (int, string) {
				t.Helper()
				var from io.Reader = strings.NewReader(body)
				if !known {
					from = struct{ io.Reader }{from}
				}
				r, err := http.NewRequest(http.MethodPost, to.URL+path, from)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("X-Client", fmt.Sprint(to.Major, known))
				for i := 0; i < len(header); i += 2 {
					r.Header.Set(header[i], header[i+1])
				}
				response, err := to.Client.Do(r)
				if err != nil {
					return 0, err.Error()
				}
				defer response.Body.Close()
				text, err := io.ReadAll(response.Body)
				if err != nil {
					t.Error(err)
				}
				return response.StatusCode, string(text)
			}
			length := -1
			if known {
				length = len(small)
			}
			for _, header := range [][]string{nil, {"Expect", "100-continue"}} {
				if status, got := post("/", small, header...); status != http.StatusOK || got != digestOf(small, length) {
					t.Errorf("HTTP/%d, length known %v, %v: %d %s, want %s", to.Major, known, header, status, got, digestOf(small, length))
				}
			}
			if status, _ := post("/", `{"max_tokens":`); status != http.StatusBadRequest {
				t.Errorf("HTTP/%d: not JSON: status %d", to.Major, status)
			}
			if status, got := post("/", large); status != http.StatusRequestEntityTooLarge && status != 0 {
				t.Errorf("HTTP/%d: too large: %d %s", to.Major, status, got)
			}
			s.AwaitUsed("the bookings", "tokens", strings.ReplaceAll(fmt.Sprint(to.Major, known), " ", "%20"), 600)
		}
	}

	// A body that never ends.
	conn, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST /slow HTTP/1.1\r\nHost: example.com\r\nX-Client: slow\r\n"+chunked+"\r\n\r\n"+chunk(`{"max_tokens":`))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusRequestTimeout {
		t.Errorf("a slow body: status %d", response.StatusCode)
	}
	if k := s.Spent("slow", "slow"); k.Used != 0 {
		t.Errorf("a refused request was charged: %+v", k)
	}

	upgraded, status := s.Upgrade(t)
	if status != http.StatusSwitchingProtocols {
		t.Errorf("upgrade: status %d", status)
	}
	upgraded.Close()
	patient.UntilEqual(t, "the booking of an upgrade", func() int64 { return s.Spent("tokens", "").Used }, 10)
}
