package widen_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/internal/widen"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// backend is the store of one instance.
type backend struct{ name, address string }

func (b backend) Identity() (string, error) { return b.name, nil }

func (b backend) Open() (store.Store, error) {
	return redisstore.New(redisstore.Options{Address: b.address, Timeout: 10 * time.Second})
}

// instance is a Caddy of the fleet.
type instance struct {
	testing.TB
	*widen.Widener
	limiter *limiter.Limiter
	zone    *zone.Zone
	ref     *pool.Ref

	mu      sync.Mutex
	decided []store.Widening
}

// fleet starts three instances, in which a key is banned with its second request.
func fleet(t *testing.T, by zone.Widen) (all []*instance) {
	t.Parallel()
	server := redistest.Start(t)
	for i := range 3 {
		ref, err := pool.Acquire(backend{fmt.Sprint(t.Name(), i), server.Addr()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ref.Release() })
		template, err := key.New("{http.request.remote.host}", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		by.For = time.Hour
		z, err := zone.New(zone.Spec{
			Name: "clients", Template: template, Limit: limit.Limit{MaxEvents: &limit.Amount{Number: 1}, Window: limit.Window{Duration: caddy.Duration(time.Hour)}, Algorithm: "token_bucket"},
			Cost: limit.Amount{Number: 1}, MissingKey: zone.MissingShare, Widen: &by,
			KeyRules: &store.KeyRules{Overrides: true, Ban: &store.Ban{For: time.Hour, After: 1, Within: time.Hour}},
		}, &stats.Counters{Keys: topk.New(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		one := &instance{TB: t, zone: z, ref: ref, limiter: limiter.New(limiter.Config{Zones: []*zone.Zone{z}, Store: ref, Logger: zap.NewNop()})}
		one.Widener = widen.New(widen.Config{Zones: []*zone.Zone{z}, Store: ref, Logger: zap.NewNop(), Decided: func(_ *zone.Zone, of store.Widening) {
			one.mu.Lock()
			defer one.mu.Unlock()
			one.decided = append(one.decided, of)
		}})
		t.Cleanup(one.Close)
		all = append(all, one)
	}
	return all
}

// ask sends a request, and returns its outcome in the zone.
func (i *instance) ask(address string) outcome.Outcome {
	i.Helper()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(address), 1).String()
	v := i.limiter.Decide(caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil))
	defer v.Release()
	i.Note(v)
	if v.Err != nil {
		i.Fatal(v.Err)
	}
	if rejected := v.Rejected(); rejected != nil {
		return rejected.Outcome()
	}
	return v.Entries[0].Outcome
}

// earn has an address earn a ban.
func (i *instance) earn(address string) {
	i.Helper()
	for range 2 {
		i.ask(address)
	}
	if o := i.ask(address); o != outcome.Banned {
		i.Fatalf("%s is not banned: %s", address, outcome.Names[o])
	}
}

// networks returns what the instance knows of banned networks, with their notes.
func (i *instance) networks() string {
	var all []string
	for n := range i.ref.Networks(i.zone.Rules()[0]).All() {
		all = append(all, fmt.Sprint(n.Prefix, " ", n.Override.Kind, " by ", n.Override.By, ": ", n.Override.Note))
	}
	return strings.Join(all, "\n")
}

// lookAll has all instances look at the same time, and returns what they have decided.
func lookAll(all []*instance, watched time.Duration) (decided []store.Widening) {
	var wg sync.WaitGroup
	for _, i := range all {
		wg.Go(func() { i.LookNow(watched) })
	}
	wg.Wait()
	for _, i := range all {
		decided = append(decided, i.decided...)
		i.decided = nil
	}
	return decided
}

// TestFleetWidens: of bans that three instances make, exactly one ban of their network results, which all instances know. It names why,
// and when an operator has ended it, the same bans do not bring it back.
func TestFleetWidens(t *testing.T) {
	all := fleet(t, zone.Widen{Widen: store.Widen{From: 5}, IPv4: 24, IPv6: 48})
	for n := range 4 {
		all[n%3].earn(fmt.Sprint("203.0.113.", n))
	}
	for range 5 { // one address counts once, however often it is refused, and on whichever instance
		for _, i := range all {
			i.ask("203.0.113.1")
		}
	}
	if decided := lookAll(all, 0); len(decided) > 0 {
		t.Fatalf("with four banned addresses: %+v", decided)
	}
	for n := range 4 {
		all[n%3].earn(fmt.Sprint("198.51.100.", n)) // of another network
	}
	all[1].earn("203.0.113.200")
	if decided := append(lookAll(all, time.Hour), lookAll(all, time.Hour)...); len(decided) > 0 {
		t.Fatalf("before it was watched: %+v", decided)
	}
	decided := lookAll(all, 0)
	network := netip.MustParsePrefix("203.0.113.0/24")
	if len(decided) != 1 || decided[0].Network != network || decided[0].Verdict != store.Widened || decided[0].Banned != 5 || decided[0].Passed != 0 {
		t.Fatalf("three instances have decided %+v", decided)
	}
	want := "203.0.113.0/24 banned by widen: widened: 5 of its keys were banned at once, and 0 others had passed in 10m"
	for n, i := range all {
		patient.Until(t, fmt.Sprint("instance ", n, " knows the network"), func() bool { return i.networks() == want })
		if o := i.ask(fmt.Sprint("203.0.113.", 100+n)); o != outcome.Banned {
			t.Errorf("instance %d: another address of the network is %s", n, outcome.Names[o])
		}
	}
	if o := all[0].ask("198.51.100.99"); o != outcome.Allowed {
		t.Errorf("an address of another network is %s", outcome.Names[o])
	}
	lookAll(all, 0) // so that each knows the decision
	for n, i := range all {
		if known := i.zone.Stats.Widened.All(time.Now()); len(known) != 1 || known[0].Network != network || known[0].Banned != 5 || known[0].Spared {
			t.Errorf("instance %d knows the decisions %+v", n, known)
		}
	}
	networker := all[2].ref.Store.Store.(store.Networker)
	if err := networker.ClearNetwork(t.Context(), all[2].zone.Rules()[0], network); err != nil {
		t.Fatal(err)
	}
	for n, i := range all {
		patient.Until(t, fmt.Sprint("instance ", n, " has forgotten the network"), func() bool { return i.networks() == "" })
		for address := range 5 {
			i.ask(fmt.Sprint("203.0.113.", address))
		}
	}
	if decided := append(lookAll(all, 0), lookAll(all, 0)...); len(decided) > 0 || all[0].networks() != "" {
		t.Errorf("after an operator has ended it: %+v, %s", decided, all[0].networks())
	}
}

// TestInnocentKeys: a network is spared if another key of it passes on any instance, before or after its keys were banned. Keys
// that are refused, and those that are banned, are not innocent.
func TestInnocentKeys(t *testing.T) {
	all := fleet(t, zone.Widen{Widen: store.Widen{From: 2, Innocent: 1}, IPv4: 24, IPv6: 48})
	all[2].ask("203.0.113.77") // before
	all[0].earn("203.0.113.1")
	all[1].earn("203.0.113.2")
	lookAll(all, time.Hour)
	all[0].ask("203.0.113.78")
	lookAll(all, time.Hour)
	decided := lookAll(all, 0)
	if len(decided) != 1 || decided[0].Verdict != store.Spared || decided[0].Banned != 2 || decided[0].Passed != 2 {
		t.Fatalf("with two that pass: %+v", decided)
	}
	lookAll(all, 0)
	if known := all[0].zone.Stats.Widened.All(time.Now()); len(known) != 1 || !known[0].Spared {
		t.Errorf("known is %+v", known)
	}

	// An IPv6 client that has a whole /48 is hit, and no other.
	all[1].ask("2001:db8:1:ffff::1")
	for n := range 4 {
		all[n%3].earn(fmt.Sprintf("2001:db8:1:%x::1", n))
	}
	lookAll(all, time.Hour) // one may look before others have noted their bans
	lookAll(all, time.Hour)
	if decided = lookAll(all, 0); len(decided) != 1 || decided[0].Verdict != store.Widened || decided[0].Banned != 4 || decided[0].Passed != 1 {
		t.Fatalf("an IPv6 network: %+v", decided)
	}
	if got := all[0].networks(); !strings.HasPrefix(got, "2001:db8:1::/48 banned") && got != "" {
		t.Errorf("banned are %s", got)
	}
	for n, i := range all {
		patient.Until(t, fmt.Sprint("instance ", n, " knows the network"), func() bool { return strings.HasPrefix(i.networks(), "2001:db8:1::/48 banned") })
	}
}

// TestInnocentAmongBanned: a network is spared for a key that passes on an instance, also if many others have passed there before
// other instances have banned them.
func TestInnocentAmongBanned(t *testing.T) {
	all := fleet(t, zone.Widen{Widen: store.Widen{From: 2}, IPv4: 24, IPv6: 48})
	for n := range 20 {
		all[0].ask(fmt.Sprint("203.0.113.", n))
	}
	all[0].ask("203.0.113.200")
	for n := range 20 {
		all[1].earn(fmt.Sprint("203.0.113.", n))
	}
	lookAll(all[1:], time.Hour)
	if decided := lookAll(all[:1], 0); len(decided) != 1 || decided[0].Verdict != store.Spared || decided[0].Banned != 20 || decided[0].Passed != 1 {
		t.Errorf("with one that passes: %+v", decided)
	}
}

// TestDryRunWidens: a dry run decides and bans nothing.
func TestDryRunWidens(t *testing.T) {
	all := fleet(t, zone.Widen{Widen: store.Widen{From: 2}, IPv4: 24, IPv6: 48, DryRun: true})
	for n := range 6 {
		all[n%3].earn(fmt.Sprint("203.0.113.", n))
	}
	decided := append(lookAll(all, 0), lookAll(all, 0)...)
	if len(decided) != 1 || decided[0].Verdict != store.Widened {
		t.Fatalf("decided is %+v", decided)
	}
	for n := range 3 {
		all[n].earn(fmt.Sprint("203.0.113.", 50+n))
	}
	if decided := append(lookAll(all, 0), lookAll(all, 0)...); len(decided) > 0 || all[0].networks() != "" {
		t.Errorf("the same network again: %+v, %s", decided, all[0].networks())
	}
}

// TestOperatorsDecide: what an operator has set for a network stays. A ban of a larger one also stays.
func TestOperatorsDecide(t *testing.T) {
	all := fleet(t, zone.Widen{Widen: store.Widen{From: 2}, IPv4: 24, IPv6: 48})
	rule, networker := all[0].zone.Rules()[0], all[0].ref.Store.Store.(store.Networker)
	set := func(network string, o store.Override) {
		t.Helper()
		if err := networker.SetNetwork(t.Context(), rule, netip.MustParsePrefix(network), o); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 3 {
		all[0].earn(fmt.Sprint("203.0.113.", n))
		all[0].earn(fmt.Sprint("198.51.100.", n))
	}
	set("203.0.113.0/24", store.Override{Kind: store.KindExempt, Note: "an office"})
	set("198.51.0.0/16", store.Override{Kind: store.KindBanned})
	all[0].LookNow(0)
	if got, want := all[0].networks(), "198.51.0.0/16 banned by : \n203.0.113.0/24 exempt by : an office"; got != want || len(all[0].decided) > 0 {
		t.Errorf("got %s and %+v, want %s", got, all[0].decided, want)
	}
}

// TestOperatorsDecideMeanwhile: while Redis did not take the ban of a network, an operator has exempted that, which stays.
func TestOperatorsDecideMeanwhile(t *testing.T) {
	one := fleet(t, zone.Widen{Widen: store.Widen{From: 2}, IPv4: 24, IPv6: 48})[0]
	for n := range 2 {
		one.earn(fmt.Sprint("203.0.113.", n))
	}
	refusing := &refusing{Store: one.ref.Store.Store.(*redisstore.Store)}
	one.ref.Store.Store = refusing
	one.LookNow(0)
	network, rule := netip.MustParsePrefix("203.0.113.0/24"), one.zone.Rules()[0]
	if refusing.refused != 1 || one.networks() != "" {
		t.Fatalf("refused are %d, and banned %s", refusing.refused, one.networks())
	}
	if err := refusing.Store.SetNetwork(t.Context(), rule, network, store.Override{Kind: store.KindExempt, Note: "an office"}); err != nil {
		t.Fatal(err)
	}
	one.LookNow(0)
	if got, want := one.networks(), "203.0.113.0/24 exempt by : an office"; got != want || refusing.refused != 1 {
		t.Errorf("got %s after %d bans, want %s", got, refusing.refused, want)
	}
}

// refusing is a store that refuses bans of networks.
type refusing struct {
	*redisstore.Store
	refused int
}

// BanNetwork implements [store.Widener].
func (r *refusing) BanNetwork(ctx context.Context, rule *store.Rule, network netip.Prefix, ban store.Override) (bool, error) {
	if r.refused > 0 {
		return r.Store.BanNetwork(ctx, rule, network, ban)
	}
	r.refused++
	return false, errors.New("no")
}

// TestManyBans: what waits to be noted is bounded. In a flood of banned keys, one network is banned, and nothing is
// watched afterwards.
func TestManyBans(t *testing.T) {
	all := fleet(t, zone.Widen{Widen: store.Widen{From: 2}, IPv4: 24, IPv6: 48})[:1]
	one := all[0]
	for n := range 1500 {
		for range 2 {
			one.ask(fmt.Sprintf("2001:db8:7:%x::1", n))
		}
	}
	if n := one.Waiting(); n != 1024 {
		t.Errorf("%d bans wait, want 1024", n)
	}
	if decided := append(lookAll(all, 0), lookAll(all, 0)...); len(decided) != 1 || decided[0].Banned != store.MaxWiden {
		t.Errorf("decided is %+v", decided)
	}
	all1, err := one.ref.Store.Store.(store.Widener).Widenings(t.Context(), one.zone.Rules()[0])
	if err != nil || len(all1.Suspects) > 0 {
		t.Errorf("suspects are left: %+v, %v", all1, err)
	}
}
