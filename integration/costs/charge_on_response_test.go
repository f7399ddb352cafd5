//go:build deep

package costs_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// chargingSite has a limit of 100 that counts only failures. A cost of 0 shows what is left.
const chargingSite = `
	rate_limit {
		zone failures {
			key         {header.X-Client}
			algorithm   fixed_window
			events      100
			window      year
			cost        {header.X-Cost} 1
			cost_header X-Tokens-Used
			charge on_response {
				status 401
			}
		}
	}
	basic_auth /auth {
		alice $2a$08$cy9egAr4luR06gP4k71NWeufAowZa4epgNZgNKwDAShhfOrQwRXUm
	}
	reverse_proxy {$UPSTREAM}`

// failing answers in the way that the request asks for.
func failing(_ *harness.Backend, w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "" {
		harness.AnswerAsAsked(nil, w, r)
		return
	}
	if r.URL.Path == "/hangs-up" {
		panic(http.ErrAbortHandler)
	}
	used := r.Header.Get("X-Use")
	if r.URL.Path == "/trailer" {
		w.Header().Set("Trailer", "X-Tokens-Used")
		defer w.Header().Set("X-Tokens-Used", used)
	} else if used != "" {
		w.Header().Set("X-Tokens-Used", used)
	}
	if r.URL.Path == "/broken-off" {
		w.Header().Set("Content-Length", "1000")
	}
	if status, err := strconv.Atoi(r.Header.Get("X-Status")); err == nil {
		w.WriteHeader(status)
	}
	_, _ = io.WriteString(w, "some ")
	switch r.URL.Path {
	case "/streamed":
		for range 3 {
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, "more ")
		}
	case "/broken-off":
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// TestChargeOnResponse: responses are charged correctly in every version of HTTP, however they
// end: written, streamed, broken off, returned as an error, or as an upgrade.
func TestChargeOnResponse(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		b := harness.StartBackend(t, failing)
		s, versions := harness.StartEveryVersion(t, "rate_limit {\n"+store+"}", chargingSite, b.Variable())
		for _, to := range versions {
			for i, e := range []struct {
				path   string
				header []string
				status int // 0: the client may see no status
				costs  int64
			}{
				{"/written", nil, 200, 0},
				{"/written", []string{"X-Use", "7"}, 200, 0},
				{"/written", []string{"X-Status", "401"}, 401, 1},
				{"/written", []string{"X-Status", "401", "X-Use", "7"}, 401, 7},
				{"/written", []string{"X-Status", "401", "X-Use", "0"}, 401, 0},
				{"/streamed", []string{"X-Use", "7"}, 200, 0},
				{"/streamed", []string{"X-Status", "401", "X-Use", "7"}, 401, 7},
				{"/trailer", []string{"X-Use", "7"}, 200, 0},
				{"/trailer", []string{"X-Status", "401", "X-Use", "7"}, 401, 7},
				{"/hangs-up", nil, 502, 0},
				{"/broken-off", []string{"X-Use", "7"}, 0, 0},
				{"/broken-off", []string{"X-Status", "401"}, 0, 1},
				{"/broken-off", []string{"X-Status", "401", "X-Use", "7"}, 0, 7},
				{"/auth", nil, 401, 1},
				{"/auth", []string{"Authorization", "Basic YWxpY2U6aGljY3Vw"}, 200, 0},
				{"/auth", []string{"Authorization", "Basic YWxpY2U6Z3Vlc3M="}, 401, 1},
			} {
				name := fmt.Sprintf("client %d of HTTP/%d", i, to.Major)
				what := fmt.Sprintf("HTTP/%d %s %v", to.Major, e.path, e.header)
				r, err := http.NewRequest(http.MethodGet, to.URL+e.path, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("X-Client", name)
				for i := 0; i < len(e.header); i += 2 {
					r.Header.Set(e.header[i], e.header[i+1])
				}
				status := 0
				if response, err := to.Client.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, response.Body)
					response.Body.Close()
					status = response.StatusCode
					if response.ProtoMajor != to.Major {
						t.Errorf("%s: over HTTP/%d", what, response.ProtoMajor)
					}
					if response.Header.Get("X-Tokens-Used")+response.Trailer.Get("X-Tokens-Used") != "" {
						t.Errorf("%s: the client is told the cost", what)
					}
				}
				if e.status != 0 && status != e.status {
					t.Errorf("%s: status %d, want %d", what, status, e.status)
				}
				awaitLeft(t, s, what, name, 100-e.costs)
			}
		}
		conn, status := s.Upgrade(t)
		if status != http.StatusSwitchingProtocols {
			t.Errorf("upgrade: status %d", status)
		}
		awaitLeft(t, s, "upgrade", "", 100)
		conn.Close()
	})
}
