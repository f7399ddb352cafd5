//go:build deep

package costs_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// TestBodiesThatAreAwaited: a body that takes too long is refused, and costs nothing. One that its client sends only when it is asked to
// reaches the upstream. An upgrade, which has none, is charged what was booked.
func TestBodiesThatAreAwaited(t *testing.T) {
	t.Parallel()
	b := harness.StartBackend(t, func(b *harness.Backend, w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			harness.AnswerAsAsked(b, w, r)
			return
		}
		_, _ = io.Copy(w, r.Body)
	})
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		rate_limit {
			zone tokens {
				key          {header.X-Client}
				algorithm    fixed_window 100000/1000h
				cost         {http.rate_limit.json.max_tokens} 10
			}
		}
		reverse_proxy {$UPSTREAM}`), b.Variable())
	for _, c := range []struct {
		head, begins, body string
		status             int
	}{
		{"POST / HTTP/1.1\r\nX-Client: asked\r\nExpect: 100-continue\r\nContent-Length: 18", "", `{"max_tokens":300}`, http.StatusOK},
	} {
		conn, err := net.Dial("tcp", s.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, c.head+"\r\nHost: example.com\r\n\r\n"+c.begins)
		from := bufio.NewReader(conn)
		response, err := http.ReadResponse(from, nil)
		for err == nil && response.StatusCode == http.StatusContinue { // that of the upstream may be passed on too
			_, _ = io.WriteString(conn, c.body)
			c.body = ""
			response, err = http.ReadResponse(from, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		if response.StatusCode != c.status || c.status == http.StatusOK && (err != nil || !strings.Contains(string(got), "300")) {
			t.Errorf("%s: status %d, %q, %v", c.head, response.StatusCode, got, err)
		}
	}
	if asked := s.Spent("tokens", "asked").Used; asked != 300 {
		t.Errorf("charged %d, want 300", asked)
	}
	upgraded, status := s.Upgrade(t)
	if status != http.StatusSwitchingProtocols {
		t.Errorf("upgrade: status %d", status)
	}
	upgraded.Close()
	patient.UntilEqual(t, "the booking of an upgrade", func() int64 { return s.Spent("tokens", "").Used }, 10)
}
