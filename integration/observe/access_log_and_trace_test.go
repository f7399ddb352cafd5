package observe_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
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

// TestTraceHasTheDecision: so does the trace, where the tracing directive runs.
func TestTraceHasTheDecision(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		tracing {
			span traced
		}
		rate_limit {
			zone spans {
				events 1
				window 1h
			}
		}
		respond ok`), "OTEL_TRACES_EXPORTER=console")
	client := harness.NewClient(t, "")
	s.Get(client, "/")
	s.Get(client, "/")
	s.Stop() // sends the rest
	log := string(s.Log())
	for _, attribute := range []string{
		`"Key":"rate_limit.outcome","Value":{"Type":"STRING","Value":"allowed"}`,
		`"Key":"rate_limit.outcome","Value":{"Type":"STRING","Value":"limited"}`,
		`"Key":"rate_limit.zone","Value":{"Type":"STRING","Value":"spans"}`,
		`"Key":"rate_limit.limit","Value":{"Type":"INT64","Value":1}`,
		`"Key":"rate_limit.remaining","Value":{"Type":"INT64","Value":0}`,
	} {
		if !strings.Contains(strings.NewReplacer("\n", "", "\t", "", " ", "").Replace(log), attribute) {
			t.Errorf("no span has %s", attribute)
		}
	}
}

// TestLogModes: what a running Caddy logs about refusals of a few keys.
func TestLogModes(t *testing.T) {
	t.Parallel()
	const keys, each = 40, 25
	text := ""
	for _, mode := range []string{"off", "first", "all"} {
		text += `
		handle /` + mode + ` {
			rate_limit {
				zone ` + mode + ` {
					key {header.X-Key}
					events 0
					window 1h
				}
				log ` + mode + `
			}
		}`
	}
	s := harness.StartCaddy(t, harness.Caddyfile("", text))
	client := harness.NewClient(t, "")
	var group sync.WaitGroup
	for _, mode := range []string{"off", "first", "all"} {
		for key := range keys {
			group.Go(func() {
				for range each {
					a, err := harness.Send(client, s.URL("/"+mode), "X-Key", string(rune('A'+key)))
					if err != nil || a.Status != http.StatusTooManyRequests {
						t.Errorf("status %d, %v", a.Status, err)
						return
					}
				}
			})
		}
	}
	group.Wait()
	s.Stop()
	got := make(map[string]int)
	for _, l := range s.LinesOf(harness.OurLogger) {
		var fields struct {
			Zone     string
			ClientIP string `json:"client_ip"`
			RemoteIP string `json:"remote_ip"`
			Wait     float64
			Requests int
		}
		if err := json.Unmarshal([]byte(l.Text), &fields); err != nil {
			t.Fatal(err)
		}
		switch {
		case l.Message == "rate limit exceeded again":
			got[fields.Zone+" again"] += fields.Requests
		case l.Level != "info" || fields.ClientIP != "127.0.0.1" || fields.RemoteIP != "127.0.0.1" || fields.Wait != 3600:
			t.Errorf("line %s", l.Text)
		default:
			got[fields.Zone]++
		}
	}
	if got["off"] != 0 || got["first"] != keys || got["all"] != keys*each || got["first again"] != keys*(each-1) || len(got) != 3 {
		t.Errorf("lines: %v", got)
	}
}
