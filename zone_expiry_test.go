package caddyratelimit_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestSameOverride: an override that gives its key the zone's own limit is found, and another one is not. Each says
// since when it holds, and who has set it.
func TestSameOverride(t *testing.T) {
	caddytest.RunConfig(t, caddytest.FreeAddress(t), "http://example.com {\nrate_limit {\nzone z {\nkey {client_ip}\nrate 3/1h\noverrides\nnote \"why, who\"\n}\n}\n}\n")
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
		Note     string
		Override struct {
			Note  string
			SetBy string `json:"set_by"`
			Since time.Time
		}
	}
	if err := json.Unmarshal([]byte(caddytest.Admin(t, http.MethodGet, "zones/z/key?key=192.0.2.1", "")), &key); err != nil {
		t.Fatal(err)
	}
	if o := key.Override; key.Note != "why, who" || o.Note != "T-4711" || o.SetBy == "" || time.Since(o.Since) > time.Minute {
		t.Errorf("got %+v", key)
	}
}

// TestExpiredZoneIsExplained: what shows an expired zone says so.
func TestExpiredZoneIsExplained(t *testing.T) {
	address := caddytest.FreeAddress(t)
	caddytest.RunConfig(t, address, "http://example.com {\nrate_limit {\nzone z {\nkey {client_ip}\nrate 3/1h\nexpires 2020-01-01\nnote T-4711\n}\n}\n}\n")
	const state = "it has expired on 2020-01-01 00:00 UTC: requests do not meet it"
	for path, want := range map[string]string{
		"zones": state, "zones/z/key?key=192.0.2.1": state, "zones/z/top": state, "zones/z/bans": state, "doctor": state,
		"zones/z": `"rollout": "expired"`, "key?key=192.0.2.1": `"note": "T-4711"`,
	} {
		if got := caddytest.Admin(t, http.MethodGet, path, ""); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	x := explain(t, adminapi.Request{URL: "http://example.com" + address[strings.LastIndex(address, ":"):] + "/"})
	if len(x.Zones) != 1 || x.Zones[0].Met || x.Zones[0].Reason != state || !x.Passes {
		t.Errorf("explain: got %+v", x)
	}
}
