package clientip_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
)

// TestSource: what is read of a server, part of which Caddy does not export.
func TestSource(t *testing.T) {
	for config, want := range map[string]clientip.Source{
		`{}`: {Headers: []string{"X-Forwarded-For"}},
		`{"trusted_proxies": {"source": "static", "ranges": ["10.0.0.0/8", "192.0.2.1"]}, "trusted_proxies_strict": 1, "client_ip_headers": ["X-Real-Ip"]}`: {
			Trusted: []string{"10.0.0.0/8", "192.0.2.1"}, Strict: true, Headers: []string{"X-Real-Ip"},
		},
		`{"trusted_proxies_unix": true}`: {TrustsSockets: true, Headers: []string{"X-Forwarded-For"}},
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
		want.Server = "main"
		if got := clientip.SourceOf(app.(*caddyhttp.App).Servers["main"]); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", config, got, want)
		}
	}
}
