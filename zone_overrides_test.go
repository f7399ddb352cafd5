package caddyratelimit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestWhoHasSetAnOverride: an override shows its time, its author and the reason.
func TestWhoHasSetAnOverride(t *testing.T) {
	caddytest.RunConfig(t, caddytest.FreeAddress(t), "http://example.com {\nrate_limit {\nzone z {\nkey {client_ip}\nrate 3/1h\noverrides\n}\n}\n}\n")
	caddytest.Admin(t, http.MethodPut, "zones/z/key/override?key=192.0.2.1", `{"limit": "4/1h", "note": "T-4711"}`)
	var key struct {
		Override struct {
			Note  string
			SetBy string `json:"set_by"`
			Since time.Time
		}
	}
	caddytest.AdminInto(t, "zones/z/key?key=192.0.2.1", &key)
	if o := key.Override; o.Note != "T-4711" || o.SetBy == "" || time.Since(o.Since) > time.Minute {
		t.Errorf("got %+v", key)
	}
}
