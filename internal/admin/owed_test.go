package admin_test

import (
	"fmt"
	"net/http"
	"testing"

	_ "github.com/seed-161337e5/caddyratelimit"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestOwed: what a key has used beyond its limit shows as a debt, under every algorithm that can have one,
// under an override, and in plans.
func TestOwed(t *testing.T) {
	algorithms := map[string]string{
		"fixed":    `"algorithm": "fixed_window", "align": "first_request", "max_events": 2000, "window": "1000h"`,
		"day":      `"algorithm": "fixed_window", "max_events": 2000, "window": "year", "timezone": "Europe/Berlin"`,
		"log":      `"algorithm": "sliding_window_log", "max_events": 2000, "window": "1000h"`,
		"counter":  `"algorithm": "sliding_window_counter", "max_events": 2000, "window": "80000h"`,
		"bucket":   `"algorithm": "token_bucket", "max_events": 2000, "window": "20h"`,
		"interval": `"algorithm": "token_bucket", "refill": "interval", "max_events": 2000, "window": "20h"`,
		"leaky":    `"algorithm": "leaky_bucket", "max_events": 2000, "window": "20h", "burst": 2000`,
		"plans":    `"plan": {"of": "{http.request.header.Plan}", "plans": {"one": {"algorithm": "fixed_window", "align": "first_request", "max_events": 2000, "window": "1000h"}}, "default": "one"}`,
	}
	caddytest.EachStore(t, func(t *testing.T, kept *caddytest.Kept) {
		for name, limit := range algorithms {
			ctx := caddytest.Config(t)
			h := caddytest.LoadInto(t, ctx, fmt.Sprintf(`{%s"rate_limits": {%q: {"key": "{http.request.header.Client}", %s, "cost": 200, "charge": {"header": "X-Tokens"}, "overrides": true}}}`,
				kept.Option(), name, limit))
			caddytest.Run(t, ctx)
			look := func(client string) (k adminapi.Key) {
				caddytest.AdminInto(t, "zones/"+name+"/key?key="+client, &k)
				return k
			}
			check := func(client string, used, owed int64) {
				t.Helper()
				// Some of a bucket has come back meanwhile, but less than 50 in half an hour.
				if k := look(client); k.Used > used || k.Used < used-50 || k.Owed > owed || k.Owed < owed-50 || k.Used != k.Quota-k.Remaining+k.Owed {
					t.Errorf("%s, %s: used %d of %d, %d remain, %d owed; want %d used, %d owed", name, client, k.Used, k.Quota, k.Remaining, k.Owed, used, owed)
				}
			}
			for client, cost := range map[string]string{"debtor": "3700", "full": "2000", "other": "500"} {
				e := caddytest.Send(t, h, false, func(w http.ResponseWriter, _ *http.Request) error {
					w.Header().Set("X-Tokens", cost)
					return nil
				}, "Client", client)
				<-e.Done
				kept.Used(t, name, client) // when the cost has arrived
			}
			if name == "log" { // which takes a late cost of at most its events
				check("debtor", 2200, 200)
			} else {
				check("debtor", 3700, 1700)
			}
			check("full", 2000, 0)
			check("other", 500, 0)
			check("nobody", 0, 0)
			if name == "fixed" {
				caddytest.Admin(t, http.MethodPut, "zones/"+name+"/key/override?key=debtor", `{"limit": 3000}`)
				check("debtor", 3700, 700)
			}
		}
	})
}
