package costs_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestFieldsOfBodies: requests are counted by fields of their bodies in every version of HTTP, and with Expect: 100-continue. The
// upstream gets the same bytes. A request without a body and an upgrade pass.
func TestFieldsOfBodies(t *testing.T) {
	t.Parallel()
	b := harness.StartBackend(t, digest)
	s, versions := harness.StartEveryVersion(t, "", `
		rate_limit {
			zone calls {
				key   "{header.X-Client} {http.rate_limit.json.params.name}"
				rate  3/1000h
				match vars {http.rate_limit.json.method} tools/call
			}
		}
		reverse_proxy {$UPSTREAM}`, b.Variable())
	text := strings.Repeat("words ", 10_000)
	call := `{"method":"tools/call","params":{"arguments":"` + text + `","name":"search"}}`
	spelled := `{"params":{"\u006eame":"se\u0061rch","arguments":"` + text + `"},"\u006dethod":"tools\/call"}`
	for _, to := range versions {
		for _, known := range []bool{false, true} {
			for i, c := range []struct {
				body string
				want int
			}{
				{call, 200},
				{spelled, 200},
				{call, 200},
				{spelled, 429},
				{"[" + call + "," + spelled + "]", 400},
				{`{"method":"tools/list"}`, 200},
				{call + "x", 400},
			} {
				var from io.Reader = strings.NewReader(c.body)
				if !known {
					from = struct{ io.Reader }{from}
				}
				r, err := http.NewRequest(http.MethodPost, to.URL, from)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("X-Client", fmt.Sprint(to.Major, known))
				if i == 0 {
					r.Header.Set("Expect", "100-continue")
				}
				response, err := to.Client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(response.Body)
				response.Body.Close()
				length := -1
				if known {
					length = len(c.body)
				}
				if response.StatusCode != c.want || err != nil || c.want == 200 && string(got) != digestOf(c.body, length) {
					t.Errorf("HTTP/%d, length known %v, %.40s: %d %s, %v, want %d", to.Major, known, c.body, response.StatusCode, got, err, c.want)
				}
			}
		}
	}

	for _, to := range versions {
		response, err := to.Client.Get(to.URL)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("HTTP/%d, no body: status %d", to.Major, response.StatusCode)
		}
	}
	upgraded, status := s.Upgrade(t)
	if status != http.StatusSwitchingProtocols {
		t.Errorf("upgrade: status %d", status)
	}
	upgraded.Close()
}
