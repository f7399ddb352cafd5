//go:build deep

package observe_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestHostileKeysInTheLog: a client that chooses its key can write no line of its own into the
// log, in no format, and no line that is as long as its header.
func TestHostileKeysInTheLog(t *testing.T) {
	t.Parallel()
	keys := []string{
		"a\n2026/01/02 03:04:05.678\tINFO\thttp.handlers.rate_limit\tforged",
		"b\r\n{\"level\":\"info\",\"logger\":\"http.handlers.rate_limit\",\"msg\":\"forged\"}",
		"\"}\n{\"msg\":\"forged\"}", "\x1b[2J\x1b[31mred", "\x00\x07\x7f\u2028\u202e", "\xff\xfe\xc3", "%0aforged {http.request.host} ${HOME}",
		"long" + strings.Repeat("é", 2_400),
	}
	for _, format := range []string{"json", "console"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			s := harness.StartCaddy(t, harness.Caddyfile("log {\nformat "+format+"\ninclude http.handlers.rate_limit\n}", `
				rate_limit {
					zone hostile {
						key {query.key}
						events 0
						window 1h
					}
					log_key
					log all
				}`))
			client := harness.NewClient(t, "")
			for _, key := range keys {
				if a := s.Get(client, "/?key="+url.QueryEscape(key)); a.Status != http.StatusTooManyRequests {
					t.Fatalf("status %d", a.Status)
				}
			}
			s.Stop()
			found := 0
			for line := range bytes.Lines(s.Log()) {
				if !bytes.Contains(line, []byte(`hostile`)) {
					if bytes.Contains(line, []byte("forged")) {
						t.Errorf("a line that a client wrote: %s", line)
					}
					continue
				}
				found++
				fields := line[max(0, bytes.IndexByte(line, '{')):] // the console writes the level in color
				if len(line) > 2000 || bytes.ContainsAny(fields[:len(fields)-1], "\x00\x07\x1b\r") {
					t.Errorf("%d bytes: %q", len(line), line[:min(len(line), 200)])
				}
				var read struct{ Key string }
				if err := json.Unmarshal(fields, &read); err != nil {
					t.Errorf("%v: %s", err, fields)
				}
				if want := strings.ToValidUTF8(keys[found-1], ""); len(want) < 1000 && strings.ReplaceAll(read.Key, "\ufffd", "") != want {
					t.Errorf("the key %q is logged as %q", want, read.Key)
				}
			}
			if found != len(keys) {
				t.Errorf("%d lines, want %d", found, len(keys))
			}
		})
	}
}
