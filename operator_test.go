package caddyratelimit_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestChangesWithoutEffect: a change of a key says what it has not changed, which other rule still decides about the key,
// and where it holds less than one expects. What has not happened is not logged.
func TestChangesWithoutEffect(t *testing.T) {
	address := caddytest.FreeAddress(t)
	logs := caddytest.RunConfig(t, address, `:80 {
		rate_limit {
			zone z {
				key {client_ip}
				rate 3/1h
				overrides
				ban 1h after 2 refusals in 1m
			}
			zone dry {
				key {client_ip}
				rate 3/1h
				overrides
				enforce 0
			}
		}
		respond ok
	}`)
	const (
		network = "zones/z/key/ban?key=192.0.2.0/24"
		local   = "it holds in this process only, until it ends (store memory)"
	)
	for _, step := range []struct {
		method, path, body string
		want               string // in the answer; empty if it is empty
		logged             string // by the log of changes
	}{
		{"DELETE", "zones/z/key/ban?key=192.0.2.1", "", `"it was not banned"`, ""},
		{"DELETE", "zones/z/key/override?key=192.0.2.1", "", `"it had no override"`, ""},
		{"DELETE", "zones/z/key?key=192.0.2.1", "", `"it had used nothing"`, ""},
		{"DELETE", network, "", `"it was not banned"`, ""},
		{"PUT", network, "", local, "ban"},
		{"DELETE", "zones/z/key/ban?key=192.0.2.1", "", `"it was not banned; Zone z is refusing this key: an operator has banned its network 192.0.2.0/24 until it is unbanned."`, ""},
		{"DELETE", "zones/z/key/override?key=192.0.2.1", "", `"it had no override"`, ""},
		{"DELETE", "zones/z/key?key=192.0.2.1", "", `"it had used nothing; Zone z is refusing this key: an operator has banned its network 192.0.2.0/24 until it is unbanned."`, ""},
		{"PUT", "zones/z/key/override?key=192.0.2.1", `{"limit": "5/1h"}`, local, "override"},
		{"DELETE", "zones/z/key/ban?key=192.0.2.1", "", `"it was not banned"`, ""},
		{"PUT", "zones/z/key/ban?key=192.0.2.1", "", local, "ban"},
		{"DELETE", "zones/z/key?key=192.0.2.1", "", `"it had used nothing; Zone z is refusing this key: an operator has banned it until it is unbanned."`, ""},
		{"DELETE", "zones/z/key/ban?key=192.0.2.1", "", `"Zone z is refusing this key: an operator has banned its network 192.0.2.0/24 until it is unbanned."`, "unban"},
		{"DELETE", network, "", `"network": "192.0.2.0/24"`, "unban"},
		{"PUT", "zones/z/key/override?key=192.0.2.0/24", `{"limit": "5/1h"}`, local, "override"},
		{"DELETE", "zones/z/key/override?key=192.0.2.1", "", `"it had no override"`, ""},
		{"DELETE", "zones/z/key/ban?key=192.0.2.0/24", "", `"it was not banned"`, ""},
		{"DELETE", "zones/z/key/override?key=192.0.2.0/24", "", `"network": "192.0.2.0/24"`, "clear"},
		{"PUT", "zones/dry/key/ban?key=192.0.2.1", "", local + "; the zone only tries it out (dry run)", "ban"},
		{"PUT", "zones/dry/key/ban?key=192.0.2.0/24", "", "(dry run)", "ban"},
	} {
		before := logs.Len()
		got := caddytest.Admin(t, step.method, step.path, step.body)
		if !strings.Contains(got, step.want) || strings.Contains(got, "warning") && strings.Contains(step.want, `"network"`) {
			t.Errorf("%s %s: got %s, want %s", step.method, step.path, got, step.want)
		}
		var logged []string
		for _, line := range logs.All()[before:] {
			if action, ok := line.ContextMap()["action"].(string); ok {
				logged = append(logged, action)
			}
		}
		if got := strings.Join(logged, ","); got != step.logged {
			t.Errorf("%s %s: logged %q, want %q", step.method, step.path, got, step.logged)
		}
	}
	if got := caddytest.Admin(t, http.MethodGet, "overrides?zone=dry", ""); strings.Count(got, `"dry_run": true`) != 2 {
		t.Errorf("bans of a dry run: got %s", got)
	}
	send(t, address, byClients(1, each(6, "/")))                      // 3 pass, 2 are refused, 1 is banned
	for _, path := range []string{"zones/z/key/ban", "zones/z/key"} { // a reset would end the ban, too
		if got := caddytest.Admin(t, http.MethodDelete, path+"?key=127.0.1.1", ""); got != "" {
			t.Errorf("%s: got %s, want nothing", path, got)
		}
	}
}

// TestListsMarkDryRuns: bans and overrides that refuse nothing are marked: in a dry run, and of keys that enforce leaves out.
func TestListsMarkDryRuns(t *testing.T) {
	for rollout, marked := range map[string]int{"": 0, "enforce 0": 21, "enforce 50": -1, "enforce 100": 0} {
		address := caddytest.FreeAddress(t) // a new one, because the server before closes its connections
		caddytest.RunConfig(t, address, ":80 {\nrate_limit {\nzone z {\nkey {client_ip}\nrate 1/1h\noverrides\nban 1h after 1 refusals in 1m\n"+rollout+"\n}\n}\nrespond ok\n}\n")
		clients := byClients(20, each(60, "/"))
		refused := send(t, address, clients)[http.StatusTooManyRequests] / 2 // the first of three requests passes
		caddytest.Admin(t, http.MethodPut, "zones/z/key/ban?key=192.0.2.0/24", "")
		if marked < 0 {
			marked = 21 - refused // the network has keys of both kinds
		}
		got := caddytest.Admin(t, http.MethodGet, "overrides?zone=z", "")
		if keys, dry := strings.Count(got, `"key":`), strings.Count(got, `"dry_run": true`); keys != 21 || dry != marked {
			t.Errorf("%s: %d bans, %d marked; want 21, %d\n%s", rollout, keys, dry, marked, got)
		}
		got = caddytest.Admin(t, http.MethodGet, "overrides?zone=z&n=5", "")
		if keys := strings.Count(got, `"key":`); keys != 5 || !strings.Contains(got, `"more": true`) {
			t.Errorf("%s: of 5 bans: %s", rollout, got)
		}
		caddytest.Admin(t, http.MethodDelete, "zones/z/key/ban?key=192.0.2.0/24", "")
		for _, v := range clients {
			caddytest.Admin(t, http.MethodDelete, "zones/z/key?key="+v.from, "")
		}
	}
}

// TestUsualCost: a key whose last request was refused because of its cost is told the state for such a request, unless the
// question names a cost. A request that costs less, and passes, does not change that.
func TestUsualCost(t *testing.T) {
	address := caddytest.FreeAddress(t)
	caddytest.RunConfig(t, address, `http://`+address+` {
		rate_limit {
			zone tokens {
				key {client_ip}
				cost {header.X-Cost} 1
				rate 1000/1h
			}
		}
		respond ok
	}`)
	for _, step := range []struct {
		send    string
		status  int
		cost    int64
		last    bool
		refused bool
	}{
		{"712", 200, 1, false, false},
		{"905", 429, 905, true, true},
		{"8", 200, 905, true, true},
		{"300", 429, 300, true, true},
	} {
		if got := send(t, address, each(1, "/", "X-Cost", step.send)); got[step.status] != 1 {
			t.Errorf("cost %s: %v, want %d", step.send, got, step.status)
		}
		var k adminapi.Key
		caddytest.AdminInto(t, "zones/tokens/key?key=127.0.0.1", &k)
		if k.Cost != step.cost || k.CostLast != step.last || k.Refused != step.refused || (k.RetryAfter > 0) != step.refused {
			t.Errorf("after a request of %s: cost %d, last %t, refused %t, wait %v; want %+v", step.send, k.Cost, k.CostLast, k.Refused, k.RetryAfter, step)
		}
	}
}

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

// TestDoctorRepeatsWarnings: while a config runs, doctor says all that was warned of when it was loaded. The configs are
// all those of TestGoldenConfigs that have warnings.
func TestDoctorRepeatsWarnings(t *testing.T) {
	for _, c := range caddytest.ConfigCases(t, "") {
		if !strings.Contains(c.Want, " | warn: ") {
			continue
		}
		config, err := c.JSON()
		if err != nil {
			t.Fatal(err)
		}
		warnings := strings.Split(warned(caddytest.RunConfig(t, caddytest.FreeAddress(t), string(config)).All()), "\n")
		said := caddytest.Admin(t, http.MethodGet, "doctor", "")
		for _, text := range warnings {
			found, fix := advice.Split(text)
			for _, part := range []string{found, fix.String()} {
				if quoted, _ := json.Marshal(part); !strings.Contains(said, strings.Trim(string(quoted), `"`)) {
					t.Errorf("%s: %q is missing in %s", c.Name, part, said)
				}
			}
		}
		if len(warnings) < 2 { // the last one is empty
			t.Errorf("%s: no warning", c.Name)
		}
	}
}

// TestAdminWithoutStore: while Redis does not answer, the admin API says so, why, and what happens to requests meanwhile.
func TestAdminWithoutStore(t *testing.T) {
	down := fmt.Sprint("127.0.0.1:", redistest.FreePort(t))
	caddytest.RunConfig(t, caddytest.FreeAddress(t), strings.Replace(oneZone("key {client_ip}\nrate 3/1h\noverrides\non_store_error local"),
		"zone z", "store redis {\naddress "+down+"\npassword hunter2\n}\nzone z", 1))
	for _, c := range []struct{ method, path, body string }{
		{"GET", "", ""}, {"DELETE", "", ""}, {"PUT", "/override", `{"limit": "5"}`}, {"DELETE", "/override", ""}, {"PUT", "/ban", ""}, {"DELETE", "/ban", ""},
	} {
		status, got := caddytest.AdminStatus(t, c.method, "zones/z/key"+c.path+"?key=192.0.2.1", c.body)
		if status != http.StatusServiceUnavailable || !strings.Contains(got, "does not answer") {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, got)
		}
		if c.method == "GET" && (!strings.Contains(got, down) || !strings.Contains(got, "each instance counts for itself")) {
			t.Errorf("a key: %s", got)
		}
	}
	for path, want := range map[string]string{"key?key=192.0.2.1": "does not answer", "stores": `"answers": false`} {
		if got := caddytest.Admin(t, "GET", path, ""); !strings.Contains(got, want) || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %s", path, got)
		}
	}
}
