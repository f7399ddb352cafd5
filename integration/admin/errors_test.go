package admin_test

import (
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestAdminErrors: errors say what is wrong and what is right.
func TestAdminErrors(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		rate_limit {
			zone "odd / zone" {
				key {http.request.uri.query.k}
				events 2
				window 1h
			}
			zone open {
				key {http.request.uri.query.k}
				events {http.request.header.Quota} 2
				window 1h
				overrides
			}
			zone plans {
				key {http.request.uri.query.k}
				plan {http.request.header.Plan} {
					free    10/1m
					pro     token_bucket 10/1s burst 20
					varying {
						events {http.request.header.Quota} 10
						window 1m
					}
					staff   unlimited
					default reject
				}
				overrides
			}
			zone all {
				plan {http.request.header.Plan} {
					staff   unlimited
					default staff
				}
				overrides
			}
		}
		respond ok`))
	for _, c := range []struct{ method, path, status, want string }{
		{"GET", "/rate_limit/", "404", "zones/{zone}/key/override"},
		{"GET", "/rate_limit/zones/", "404", "no such path"},
		{"GET", "/rate_limit/zones/none", "404", `its zones are \"all\", \"odd / zone\"`},
		{"GET", "/rate_limit/zones/plan", "404", `did you mean \"plans\"?`},
		{"GET", "/rate_limit/decisions?outcome=limitd", "400", `did you mean \"limited\"?`},
		{"GET", "/rate_limit/zones/odd%20%2F%20zone/keys", "404", "zones/{zone}/key"},
		{"POST", oddZone, "405", "takes GET"},
		{"POST", oddZone + "/key/ban?key=a", "405", "takes DELETE, PUT"},
		{"GET", "/rate_limit/key", "400", "the key is missing"},
		{"GET", "/rate_limit/key?key=a&cost=-1", "400", "cost must be from 0"},
		{"GET", "/rate_limit/key?key_base64=!", "400", "key_base64"},
		{"GET", oddZone + "/key?key=a&cost=1000000000001", "400", "cost must be from 0 to 1000000000000"},
		{"GET", oddZone + "/key?key=a&plan=pro", "400", "no plan"},
		{"GET", "/rate_limit/zones/plans/key?key=a&plan=staff", "400", "has no limit for plan"},
		{"GET", "/rate_limit/zones/all/key", "400", "all of its plans are unlimited"},
		{"GET", "/rate_limit/zones/plans/key?key=a&plan=none", "400", "its plans are free, pro, staff, varying"},
		{"PUT", oddZone + "/key/override?key=a", "409", "does not allow overrides: add the option overrides"},
		{"PUT", oddZone + "/key/ban?key=a", "409", "does not allow overrides: add the option overrides"},
		{"DELETE", oddZone + "/key/override?key=a", "409", "does not allow overrides: add the option overrides"},
		{"DELETE", oddZone + "/key/ban?key=a", "409", "bans are not enabled in zone"},
		{"PUT", "/rate_limit/zones/all/key/ban", "409", "all of its plans are unlimited"},
		{"PUT", "/rate_limit/zones/open/key/ban", "400", "the key is missing: give {query.k}"},
		{"PUT", "/rate_limit/zones/open/key/ban?key=a&for=1h", "400", "unknown parameter"},
		{"GET", oddZone + "/key", "400", "the key is missing: give {query.k}"},
		{"DELETE", oddZone + "/key", "400", "the key is missing: give {query.k}"},
		{"GET", oddZone + "/key?key=a&key=b", "400", "name one key"},
		{"GET", oddZone + "/key?key=a&part=b", "400", "name one key"},
		{"GET", oddZone + "/key?key=%zz", "400", "percent-encode"},
		{"GET", oddZone + "/key?key_base64=!", "400", "key_base64"},
		{"GET", oddZone + "/key?part=a&part=b", "400", "the key has 1 part, {query.k}, got 2"},
		{"GET", oddZone + "/key?pln=a", "400", `did you mean \"plan\"?`},
		{"GET", oddZone + "/top?by=weight", "400", "requests, refused or dry_run"},
		{"GET", oddZone + "/top?n=0", "400", "from 1 to 1000"},
		{"GET", "/rate_limit/decisions?rate=100000", "400", "from 1 to 1000"},
		{"GET", "/rate_limit/decisions?outcome=banished", "400", "must be one of allowed, limited"},
		{"GET", "/rate_limit/decisions?key=a", "400", "zone=..."},
		{"GET", "/rate_limit/decisions?zone=none", "404", "no zone"},
	} {
		_, err := s.Admin(c.method, c.path, "", "")
		if err == nil || !strings.Contains(err.Error(), ": "+c.status+" ") || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `{"error":"`) {
			t.Errorf("%s %s: %v, want %s and %s", c.method, c.path, err, c.status, c.want)
		}
	}
	for _, c := range []struct{ path, body, want string }{
		{"open/key/override", ``, "must be a JSON object with one of limit, plan and exempt"},
		{"open/key/override", `[]`, "must be a JSON object"},
		{"open/key/override", `{"exempt": true} {}`, "more than one"},
		{"open/key/override", `{"exempt": true, "fro": "1h"}`, `unknown field \"fro\"`},
		{"open/key/override", `{}`, "exactly one of limit, plan and exempt is needed, got 0"},
		{"open/key/override", `{"exempt": true, "limit": "5/1m"}`, "got 2"},
		{"open/key/override", `{"limit": ""}`, "limit is empty"},
		{"open/key/override", `{"limit": "lots"}`, "write one such as 500/1m"},
		{"open/key/override", `{"limit": "5/1m bust 5"}`, "unknown option of plan: 'bust'"},
		{"open/key/override", `{"limit": "-5/1m"}`, "events must be at least 0, got -5"},
		{"open/key/override", `{"limit": "99999999999999999999/1m"}`, "must be a whole number"},
		{"open/key/override", `{"limit": "60000000/1m"}`, "at most 50000000"},
		{"open/key/override", `{"limit": "5/1µs"}`, "window must be at least 1ms"},
		{"open/key/override", `{"limit": "5/99999d"}`, "window"},
		{"open/key/override", `{"limit": "5/1m burst 9"}`, "burst has no meaning for sliding_window_log"},
		{"open/key/override", `{"limit": "5/1m max_wait 1s"}`, "max_wait is always that of the zone"},
		{"open/key/override", `{"limit": "token_bucket 5/1m"}`, "has the algorithm sliding_window_log, and the limit of a key must have it too"},
		{"open/key/override", `{"limit": "events {http.request.header.Quota} window 1m"}`, "cannot have placeholders"},
		{"open/key/override", `{"limit": {"max_events": 5, "windw": "1m"}}`, `unknown field \"windw\"`},
		{"open/key/override", `{"limit": {"max_events": 1e400, "window": "1m"}}`, "max_events must be a whole number"},
		{"open/key/override", `{"limit": {"window": "1m"}}`, "events are missing"},
		{"open/key/override", `{"limit": {"max_events": 5, "window": "day"}}`, "must be the zone's"},
		{"open/key/override", `{"limit": {"max_events": 5, "window": "1m", "timezone": "UTC"}}`, "timezone is always that of the zone"},
		{"open/key/override", `{"plan": "pro"}`, "has no plans"},
		{"open/key/override", `{"exempt": true, "for": "-1h"}`, "for must be at least 1s, got -1h"},
		{"open/key/override", `{"exempt": true, "for": 0}`, "for must be at least 1s"},
		{"open/key/override", `{"exempt": true, "for": 60}`, `write \"60s\"`},
		{"open/key/override", `{"exempt": true, "for": "3661d"}`, "for must be at most 3660d, got 3661d"},
		{"open/key/override", `{"exempt": true, "for": "9999999999999d"}`, "invalid duration"},
		{"open/key/override", `{"exempt": true, "for": 1e400}`, "JSON object"},
		{"open/key/override", `{"exempt": true, "note": "` + strings.Repeat("n", 1025) + `"}`, "at most 1024 bytes, got 1025"},
		{"open/key/override", `{"exempt": true, "note": "` + strings.Repeat("n", 1<<16) + `"}`, "413"},
		{"open/key/ban", `{"for": "1ms"}`, "for must be at least 1s"},
		{"open/key/ban", `{"limit": "5/1m"}`, "unknown field"},
		{"plans/key/override", `{"limit": "5/1m"}`, `have the algorithms sliding_window_log, token_bucket, and a limit is for one of them: name it, as in \"sliding_window_log 500/1m\"`},
		{"plans/key/override", `{"plan": "none"}`, "has no plan"},
		{"plans/key/override", `{"plan": "varying"}`, "depends on the request"},
	} {
		_, err := s.Admin("PUT", "/rate_limit/zones/"+c.path+"?key=a", "application/json", c.body)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `{"error":"`) ||
			!strings.Contains(err.Error(), ": 400 ") && c.want != "413" {
			t.Errorf("PUT %s %.80s: %v, want %s", c.path, c.body, err, c.want)
		}
	}
	var k harness.KeyState
	if s.Ask("/rate_limit/zones/open/key?key=a", &k); k.Override.Kind != "" {
		t.Errorf("something was set: %+v", k)
	}
}
