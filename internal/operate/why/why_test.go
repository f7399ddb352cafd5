package why

import (
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestFill: each reason has its sentence, and the commands that help. TestRemedies in integration/cli runs them.
func TestFill(t *testing.T) {
	limited := adminapi.QuotaStatus{Quota: 10, Used: 10, RetryAfter: 5}
	spent := adminapi.Key{
		Outcome: "limited", Refused: true, QuotaStatus: limited, Limit: "sliding_window_log 10/1m",
	}
	with := func(change func(*adminapi.Key)) adminapi.Key {
		k := spent
		change(&k)
		return k
	}
	ofNetwork := &adminapi.Override{Kind: adminapi.KindLimit, Network: "10.0.0.0/8"}
	ban := func(by string) *adminapi.Ban { return &adminapi.Ban{By: by} }
	for name, c := range map[string]struct {
		key  adminapi.Key
		want string // the end of the sentence, with the time as T, and the commands
	}{
		"allowed": {adminapi.Key{Outcome: "allowed"}, "Zone z allows this key."},
		"spent":   {spent, "refusing this key: 10 of 10 used. Next request allowed at T.; reset z k"},
		"its limit may be raised": {
			with(func(k *adminapi.Key) { k.Overrides = true }), "Next request allowed at T.; reset z k; set z k 20",
		},
		"under a plan": {
			with(func(k *adminapi.Key) { k.Overrides, k.Plan, k.PlanFrom = true, "free", "{plan}" }),
			"refusing this key under plan free: 10 of 10 used. Next request allowed at T.; reset z k",
		},
		"a dear request": {
			with(func(k *adminapi.Key) { k.Cost, k.CostLast, k.Remaining = 905, true, 288 }),
			"its last request cost 905, and only 288 of 10 are left. A request that costs at most 288 passes now. Next request allowed at T.; reset z k",
		},
		"slots": {
			with(func(k *adminapi.Key) { k.Slots = true }),
			"10 of 10 slots are taken. Next request allowed when a running request ends. Once its running requests are forgotten, more than the limit can run at once.; reset z k",
		},
		"banned by an operator": {
			with(func(k *adminapi.Key) { k.Ban = ban(adminapi.ByOverride) }), "an operator has banned it until it is unbanned.; unban z k && reset z k",
		},
		"banned for its refusals, in a network with a limit": {
			with(func(k *adminapi.Key) { k.Ban, k.Override = ban(adminapi.ByRefusals), ofNetwork }), "and is banned until it is unbanned.; reset z k",
		},
		"never": {
			with(func(k *adminapi.Key) { k.QuotaStatus = adminapi.QuotaStatus{Quota: 10, Never: true}; k.Cost = 20 }),
			"Only the config can change that: raise the limit, or add the option overrides to the zone and exempt the key.",
		},
		"never, as all of its network": {
			with(func(k *adminapi.Key) {
				k.QuotaStatus, k.Overrides, k.Override = adminapi.QuotaStatus{Never: true}, true, ofNetwork
			}),
			"refusing this key: its limit is 0.; set --exempt z k",
		},
		"within its limit since": { // as explain finds it, which asks twice
			with(func(k *adminapi.Key) { k.RetryAfter = 0 }), "10 of 10 used. Next request allowed now.; reset z k",
		},
		"without a key": {
			adminapi.Key{Outcome: "rejected", Refused: true, Status: 401},
			"rejects requests without a key with status 401 (missing_key reject). Only the config can change that.",
		},
	} {
		k := c.key
		k.Zone, k.Key = "z", "k"
		Fill(&k)
		got := strings.ReplaceAll(k.Why, format(k.Until), "T")
		for _, one := range k.Commands {
			got += "; " + strings.ReplaceAll(strings.Join(one.Run, " && "), "caddy rate-limit ", "")
		}
		if !strings.HasSuffix(got, c.want) || strings.Contains(got, "%!") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
