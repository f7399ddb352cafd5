package clientip_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
)

// TestTrustedBy: what is read of a server, which Caddy does not export.
func TestTrustedBy(t *testing.T) {
	for config, want := range map[string][]string{
		`{}`: nil,
		`{"trusted_proxies": {"source": "static", "ranges": ["10.0.0.0/8", "192.0.2.1"]}}`: {"10.0.0.0/8", "192.0.2.1"},
	} {
		ctx, err := caddy.ProvisionContext(&caddy.Config{
			Admin:   &caddy.AdminConfig{Disabled: true},
			AppsRaw: caddy.ModuleMap{"http": json.RawMessage(`{"servers": {"main": ` + config + `}}`)},
		})
		if err != nil {
			t.Fatal(err)
		}
		app, err := ctx.App("http")
		if err != nil {
			t.Fatal(err)
		}
		if got := clientip.TrustedBy(app.(*caddyhttp.App).Servers["main"]); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", config, got, want)
		}
	}
}
