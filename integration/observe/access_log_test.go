//go:build deep

package observe_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestAccessLogHasTheDecision: the access log has the zone, the outcome, what was left, and the
// status that the client received, with and without error routes.
func TestAccessLogHasTheDecision(t *testing.T) {
	t.Parallel()
	for name, errors := range map[string]string{"bare": "", "error_routes": "handle_errors {\n respond {err.status_code}\n}"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "access.log")
			s := harness.StartCaddy(t, harness.Caddyfile("", `
				log {
					output file `+file+`
					format json
				}
				rate_limit /limited {
					zone logged {
						key {header.X-Run}
						events 1
						window 1h
						cost 1
					}
				}
				log_append left {http.rate_limit.remaining}
				respond "{http.rate_limit.allowed}"
				`+errors))
			client := harness.NewClient(t, "")
			harness.WithinASecond(t, func(try string) {
				s.Get(client, "/limited", "X-Run", try)
				s.Get(client, "/limited", "X-Run", try)
			})
			s.Get(client, "/free")
			s.Stop()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			type entry struct {
				Status int `json:"status"`
				Limit  any `json:"rate_limit"`
				Left   any `json:"left"`
			}
			var entries []entry
			for line := range bytes.Lines(text) {
				var e entry
				if err := json.Unmarshal(line, &e); err != nil {
					t.Fatal(err)
				}
				entries = append(entries, e)
			}
			got, _ := json.Marshal(entries[max(0, len(entries)-3):]) // the last try and /free
			want := `[{"status":200,"rate_limit":{"cost":1,"limit":1,"outcome":"allowed","remaining":0,"zone":"logged"},"left":0},` +
				`{"status":429,"rate_limit":{"cost":1,"limit":1,"outcome":"limited","remaining":0,"retry_after":3600,"zone":"logged"},"left":0},` +
				`{"status":200,"rate_limit":null,"left":null}]`
			if string(got) != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}
