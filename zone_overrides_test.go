package caddyratelimit_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestSameOverride: an override that gives its key the zone's own limit is found, and another one is not. Each says
// since when it holds, and who has set it.
func TestSameOverride(t *testing.T) {
	caddytest.RunConfig(t, caddytest.FreeAddress(t), "http://example.com {\nrate_limit {\nzone z {\nkey {client_ip}\nrate 3/1h\noverrides\n}\n}\n}\n")
	for _, c := range []struct {
		limit string
		found bool
	}{{"3/1h", true}, {"4/1h", false}, {"unlimited", false}} {
		caddytest.Admin(t, http.MethodPut, "zones/z/key/override?key=192.0.2.1", `{"limit": "`+c.limit+`", "note": "T-4711"}`)
		if got := slices.Contains(blamed(t), "doctor/overrides/same"); got != c.found {
			t.Errorf("limit %s: found %v, want %v", c.limit, got, c.found)
		}
		if !c.found {
			continue
		}
		caddytest.Admin(t, http.MethodDelete, "zones/z/key/override?key=192.0.2.1", "") // set --clear
		if slices.Contains(blamed(t), "doctor/overrides/same") {
			t.Errorf("limit %s: found after it was cleared", c.limit)
		}
	}
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
