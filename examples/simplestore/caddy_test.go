//go:build deep

package simplestore_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/seed-161337e5/caddyratelimit"
)

// TestCaddyWithTheStore serves requests with the config of the page.
func TestCaddyWithTheStore(t *testing.T) {
	dir, err := os.MkdirTemp("", "rl") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket, site := filepath.Join(dir, "s"), blocks(t, "caddyfile")
	if len(site) != 1 {
		t.Fatalf("%s shows %d configs", page, len(site))
	}
	text := "{\n\tadmin off\n\tpersist_config off\n}\n" + strings.Replace(site[0], "{\n", "{\n\tbind unix/"+socket+"\n", 1)
	text = strings.Replace(text, "{client_ip}", "{header.User}", 1) // clients of this socket have no addresses
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), nil)
	if err == nil {
		err = caddy.Load(config, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	ask := func(user string) (status int, retryAfter int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://example.com/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User", user)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		retryAfter, _ = strconv.Atoi(answer.Header.Get("Retry-After"))
		return answer.StatusCode, retryAfter
	}
	for i, want := range []int{200, 200, 429, 429} {
		if got, _ := ask("a"); got != want {
			t.Errorf("request %d: %d, want %d", i+1, got, want)
		}
	}
	if got, retry := ask("a"); got != 429 || retry <= 60 {
		t.Errorf("banned: %d, Retry-After %d", got, retry)
	}
	if got, _ := ask("b"); got != 200 {
		t.Errorf("another user: %d, want 200", got)
	}
}
