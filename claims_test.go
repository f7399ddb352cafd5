package caddyratelimit_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// claims authenticates users as modules for tokens do: a user has an ID and other claims.
type claims struct{}

func init() { caddy.RegisterModule(claims{}) }

func (claims) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.authentication.providers.test_claims", New: func() caddy.Module { return new(claims) }}
}

func (claims) Authenticate(_ http.ResponseWriter, r *http.Request) (caddyauth.User, bool, error) {
	user, tenant, ok := strings.Cut(r.Header.Get("Authorization"), "@")
	return caddyauth.User{ID: user, Metadata: map[string]string{"tenant": tenant}}, ok, nil
}

// TestClaimsAsKeys: keys can be claims of users that another module has authenticated, and requests that
// it refuses count in no zone.
func TestClaimsAsKeys(t *testing.T) {
	address := caddytest.FreeAddress(t)
	caddytest.RunConfig(t, address, `{"apps": {"http": {"servers": {"s": {"routes": [{"handle": [
		{"handler": "authentication", "providers": {"test_claims": {}}},
		{"handler": "rate_limit", "rate_limits": {
			"users": {"key": "{http.auth.user.id}", "max_events": 2, "window": "1h"},
			"tenants": {"key": "{http.auth.user.tenant}", "max_events": 3, "window": "1h"}
		}},
		{"handler": "static_response", "status_code": 200}
	]}]}}}}}`)
	for _, c := range []struct {
		user string
		want int
	}{
		{"", 401},
		{"alice@a", 200},
		{"alice@a", 200},
		{"alice@a", 429},
		{"carol@a", 200},
		{"dave@a", 429},
		{"bob@b", 200},
		{"alice", 401},
	} {
		r, err := http.NewRequest(http.MethodGet, "http://"+address, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", c.user)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != c.want {
			t.Errorf("%q: status %d, want %d", c.user, response.StatusCode, c.want)
		}
	}
}
