package limits_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestOverPassRoutes: the config of the docs sends requests above the limit to another upstream, which sees the mark. While
// that upstream does not answer, the usual one gets them. No client can send a mark, or have it removed.
func TestOverPassRoutes(t *testing.T) {
	t.Parallel()
	upstream := func(name string) string {
		return harness.StartBackend(t, func(_ *harness.Backend, w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, name, r.Header["X-Over-Limit"], r.Header["X_over_limit"])
		}).Address
	}
	_, text, _ := strings.Cut(harness.ReadPage(t, harness.Root+"/docs/policies.md"), "## Let pass what is above the limit\n")
	usual, config := upstream("usual "), regexp.MustCompile("(?s)```caddyfile\n(.*?)```").FindStringSubmatch(text)[1]
	local := func(cheap string) string {
		config := strings.NewReplacer("localhost:9001", cheap, "100/1m", "3/1h").Replace(config)
		return harness.Localize(config, harness.Memory, usual)
	}
	s := harness.StartCaddy(t, local(upstream("cheap ")))
	client := harness.NewClient(t, "")
	ask := func(want string, header ...string) {
		t.Helper()
		if a := s.Get(client, "/", header...); a.Status != http.StatusOK || a.Body != want || a.Header["Ratelimit"] != nil || a.Header["Ratelimit-Policy"] != nil {
			t.Errorf("with %v: status %d, %s, %v, want %s", header, a.Status, a.Body, a.Header, want)
		}
	}
	forged := [][]string{{"X-Over-Limit", "generous"}, {"X_Over_Limit", "generous"}, {"Connection", "X-Over-Limit"}}
	for _, header := range forged {
		ask("usual [] []", header...)
	}
	for _, header := range forged {
		ask("cheap [generous] []", header...)
	}
	s.MustLoad(local(fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))))
	for range 2 {
		ask("usual [generous] []")
	}
}

// TestOverPassTrailers: no client can send a mark as a trailer, announced or not, neither under its name nor under another
// one that an upstream may read as it. Other trailers come through, and all of the body.
func TestOverPassTrailers(t *testing.T) {
	t.Parallel()
	b := harness.StartBackend(t, func(_ *harness.Backend, w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, len(body), r.Header["X-Over"], slices.Sorted(maps.Keys(r.Trailer)))
	})
	soft := "key {query.k}\nrate 1/1h\nover pass X-Over"
	site := harness.Limited("plain", soft, harness.Memory, "reverse_proxy {$UPSTREAM}") +
		harness.Limited("read", soft+"\ncost_request json n", harness.Memory, "reverse_proxy {$UPSTREAM}")
	s, versions := harness.StartEveryVersion(t, "", site, b.Variable())
	json := []byte(`{"n":1}`)
	for _, zone := range []string{"plain", "read"} {
		for _, to := range versions[:2] { // the client of HTTP/3 sends no trailers
			for i := range 2 {
				r, err := http.NewRequest(http.MethodPost, fmt.Sprintf("%s/%s?k=%d", to.URL, zone, to.Major), io.MultiReader(bytes.NewReader(json))) // chunked
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/json")
				r.Trailer = http.Header{"X-Sum": {"42"}, "X-Over": {zone}, "X_over": {zone}}
				response, err := to.Client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(response.Body)
				response.Body.Close()
				if want := fmt.Sprint(7, [][]string{nil, {zone}}[i], []string{"X-Sum"}); err != nil || string(got) != want {
					t.Errorf("HTTP/%d, zone %s: the upstream got %s, want %s, error %v", to.Major, zone, got, want, err)
				}
			}
		}
		conn, err := net.Dial("tcp", s.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /%s?k=raw HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"+
			"Trailer: X-Sum\r\n\r\n7\r\n%s\r\n0\r\nX-Sum: 42\r\nX-Over: %[1]s\r\nx_over: %[1]s\r\n\r\n", zone, json)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(response.Body); err != nil || string(got) != "7 [] [X-Sum]" {
			t.Errorf("zone %s, not announced: the upstream got %s, error %v", zone, got, err)
		}
	}
}
