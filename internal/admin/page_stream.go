package admin

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// pagePulse is the time between two events of the page's stream.
	pagePulse = time.Second

	// refusedRate is how many refusals per second are sent in full, for the waits of the clients that
	// are refused now.
	refusedRate = 15

	// crowd is how many times as many decisions are looked at as are sent, which are chosen at random.
	// Otherwise it would be one client's.
	crowd = 5
)

// processStart is when this process began.
var processStart = time.Now()

// streamPage sends what the page shows, an event per second. Nothing is done for it while nobody reads,
// and for a request only what any subscriber to decisions costs.
func streamPage(c *adminCall) error {
	if err := checkPage(); err != nil {
		return err
	}
	stores, err := c.readFleet()
	if err != nil {
		return err
	}
	rate, wants, err := c.readSubscription()
	if err != nil {
		return err
	}
	decisions, err := subscribed(feed.SubscribeOnDemand(wants))
	if err != nil {
		return err
	}
	defer decisions.Unsubscribe()
	refused, err := subscribed(feed.SubscribeOnDemand(func(_, _ string, o outcome.Outcome) bool { return o.Refused() || o == outcome.DryRun }))
	if err != nil {
		return err
	}
	defer refused.Unsubscribe()
	to, err := c.beginEvents()
	if err != nil {
		return err
	}
	seconds := newSeconds(runningStores(), runningZones())
	ctx, cancel := context.WithCancel(c.request.Context())
	defer cancel()
	seconds.others = followOthers(ctx, stores)
	pulse := time.NewTicker(pagePulse)
	defer pulse.Stop()
	for ok := to.event("start", seconds.start(c.request)); ok; {
		second := seconds.next()
		refusals, _ := drain(refused, refusedRate, seconds.templates)
		second.Refused = append(second.Refused, refusals...)
		second.Decisions, second.Skipped = drain(decisions, int(rate), seconds.templates)
		if !to.event("second", second) || seconds.outdated() { // the page connects again
			break
		}
		select {
		case <-pulse.C:
		case <-to.ended:
			return nil
		case <-to.shutdown:
			return nil
		case <-decisions.Evicted:
			return nil
		case <-refused.Evicted:
			return nil
		}
	}
	return nil
}

// subscribed is what a subscription returns, with an error of the admin API if there are too many.
func subscribed(s *feed.Subscriber, err error) (*feed.Subscriber, error) {
	if errors.Is(err, feed.ErrTooManySubscribers) {
		err = adminError(http.StatusServiceUnavailable, "%w: at most %d", err, feed.MaxSubscribers)
	}
	return s, err
}

// drain returns up to n of the decisions that have come, and how many there were besides. It asks for more.
func drain(from *feed.Subscriber, n int, split templates) (some []adminapi.Decision, skipped uint64) {
	from.MarkActive()
	skipped = from.Skipped.Swap(0)
	for {
		select {
		case d := <-from.Decisions:
			some = append(some, d)
			continue
		default:
		}
		break
	}
	for len(some) > n {
		at := rand.IntN(len(some))
		some = slices.Delete(some, at, at+1)
		skipped++
	}
	from.Ask(crowd * n)
	for i := range some {
		split.split(&some[i])
	}
	return some, skipped
}

// start is the first event.
func (s *seconds) start(r *http.Request) *adminapi.PageStart {
	start := &adminapi.PageStart{
		Caddy: processName(), Process: store.Process(), Address: endpointOf(r), Since: processStart.UnixMilli(),
		Outcomes: outcome.Names[:], Zones: []adminapi.PageZone{}, Stores: []adminapi.PageStore{},
	}
	for _, bound := range stats.Bounds() {
		start.Bounds = append(start.Bounds, bound.Seconds())
	}
	for _, z := range s.zones {
		of := z.forPage()
		if s.others == nil {
			of.History = z.history()
		}
		start.Zones = append(start.Zones, of)
	}
	for _, of := range s.stores {
		start.Stores = append(start.Stores, adminapi.PageStore{Name: storeName(of.store), Remote: of.store.Store.Remote})
	}
	return start
}

func (z *runningZone) forPage() adminapi.PageZone {
	p := adminapi.PageZone{
		Zone: z.describe(nil), Parts: z.Template.PartNames(), Overrides: z.checkOverridable() == nil, Bans: z.KeyRules != nil && z.KeyRules.Ban != nil,
		Slots: z.CountsSlots(), Networks: z.TakesNetworks(),
	}
	p.Uses, p.Totals, p.Plans = nil, nil, nil // the page reads none of them
	if z.OwnPolicies.Fixed != nil && z.Plans == nil {
		p.Limited = z.Rules()[0].Limit().Events
	}
	return p
}

// endpointOf returns the address of the admin endpoint that a request has come to, as the command line
// takes it: empty for the one that it takes by itself.
func endpointOf(r *http.Request) string {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return ""
	}
	if local.Network() == "unix" {
		return "unix/" + local.String()
	}
	_, port, err := net.SplitHostPort(caddy.DefaultAdminListen)
	if at, ok := local.(*net.TCPAddr); ok && err == nil && at.IP.IsLoopback() && strconv.Itoa(at.Port) == port {
		return ""
	}
	return local.String()
}
