package admin

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestWiden: the networks are found of which enough keys are banned: the smallest ones that have all of these, of three sizes.
func TestWiden(t *testing.T) {
	banned := make(bannedKeys)
	ban := func(left time.Duration, of ...string) {
		for _, text := range of {
			banned[key.ParseAddress(text)] = left
		}
	}
	ban(time.Hour, "203.0.113.1", "203.0.113.2", "203.0.113.3", "198.51.100.1", "198.51.100.2", "192.0.2.0/24", "10.0.0.0/8")
	ban(90*time.Second, "203.0.113.4", "2001:db8:1:1::1", "2001:db8:1:1::2", "2001:db8:1:1::3")
	ban(time.Second, "2001:db8:2:1::1", "2001:db8:2:1::2", "2001:db8:2:1::3", "2001:db8:2:2::/64")
	ban(time.Second, "2001:db8:3::/64", "2001:db8:3:1::/64", "2001:db8:3:2::/64")
	ban(0, "2001:db8:3:1::/64")
	now := time.Now()
	known := store.NewNetworks(func() int64 { return now.UnixMicro() })
	found := func() string {
		var all []string
		for _, n := range wider(banned, 3, known) {
			all = append(all, fmt.Sprint(n.Network, " ", n.Banned, " ", n.For))
		}
		return strings.Join(all, ", ")
	}
	want := "2001:db8:2::/48 4 60, 203.0.113.0/24 4 3600, 2001:db8:1:1::/64 3 120, 2001:db8:2:1::/64 3 60, 2001:db8:3::/48 3 0"
	if got := found(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	around := netip.MustParsePrefix("203.0.0.0/16")
	known.Change(false, store.NetworkChange{Prefix: around, Network: &store.Network{Prefix: around, Override: store.Override{Kind: store.KindExempt}}})
	if got := found(); got != want {
		t.Errorf("within an exempt network: %s", got)
	}
	known.Change(false, store.NetworkChange{Prefix: around, Network: &store.Network{Prefix: around, Override: store.Override{Kind: store.KindBanned}}})
	if got := found(); strings.Contains(got, "203.0") {
		t.Errorf("within a banned network: %s", got)
	}
}

// TestInnocentKeys: a ban of a network is proposed after a minute in which no other key of it has passed.
func TestInnocentKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		template, err := key.New("{http.vars.client_ip}", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		algorithm, _ := algorithms.Get("fixed_window")
		rule, err := store.NewRule("z", algorithm, algorithms.Limit{Events: 10, Window: time.Minute}, 0)
		if err != nil {
			t.Fatal(err)
		}
		z := &runningZone{Zone: &zone.Zone{
			Spec:        zone.Spec{Name: "z", Template: template, KeyRules: &store.KeyRules{Overrides: true}},
			OwnPolicies: zone.Policies{Likely: &zone.QuotaPolicy{Rule: rule}}, Stats: new(stats.Counters),
		}}
		banned := bannedKeys{key.ParseAddress("203.0.113.1"): time.Hour, key.ParseAddress("203.0.113.2"): time.Hour}
		expect := func(innocent int, against string) {
			t.Helper()
			found := wider(banned, 2, nil)
			if z.countInnocent(found, banned); len(found) != 1 || found[0].Innocent != innocent || !strings.Contains(found[0].Against+".", against) {
				t.Errorf("%+v, want %d innocent keys, and against a ban: %s", found, innocent, against)
			}
		}
		z.Stats.Add("203.0.113.9", "", outcome.Allowed, stats.Untimed)
		expect(0, "ask again in a minute")
		z.Stats.Add("203.0.113.1", "", outcome.Banned, stats.Untimed)
		z.Stats.Add("203.0.113.2", "", outcome.Allowed, stats.Untimed) // it has just been banned
		z.Stats.Add("203.0.113.3", "", outcome.Allowed, stats.Untimed)
		z.Stats.Add("203.0.113.3", "", outcome.Limited, stats.Untimed)
		time.Sleep(time.Minute)
		expect(0, ".")
		z.Stats.Add("203.0.113.9", "", outcome.Allowed, stats.Untimed)
		expect(1, "it would hit keys that pass")
		time.Sleep(10 * time.Minute)
		expect(0, ".")
		z.KeyRules = nil
		expect(0, `zone "z" takes no networks: add overrides`)
		time.Sleep(time.Hour) // nobody asks any longer
		z.Stats.Add("203.0.113.9", "", outcome.Allowed, stats.Untimed)
		expect(0, "ask again in a minute")
	})
}
