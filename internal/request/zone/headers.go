package zone

import (
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// The parameters of draft-ietf-httpapi-ratelimit-headers-10. The next draft renames them.
const (
	paramQuota     = ";q="
	paramWindow    = ";w="
	paramRemaining = ";r="
	ParamNextQuota = ";t="
	paramUnit      = `;qu="concurrent-requests"`
)

// CeilSeconds returns a duration in seconds, rounded up.
func CeilSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

// prepareHeaders formats the parts of headers that are the same for all requests.
func (p *QuotaPolicy) prepareHeaders() {
	p.HeaderZone = p.Rule.Zone()
	name, err := httpsfv.Marshal(httpsfv.NewItem(p.HeaderZone))
	if err != nil {
		// A string of a structured field is ASCII, but the name of a zone may be any text.
		p.HeaderZone = store.Escape(p.HeaderZone)
		name = `"` + p.HeaderZone + `"`
	}
	p.ItemPrefix = name + paramRemaining
	p.tell(p.toldOf(p.Quota, p.Rule.At(0).Params, p.Window.Calendar == 0 && !p.Slots))
}

// told is a limit as headers describe it: a quota, in which time all of it comes back, and how many events come back in which time.
type told struct {
	quota  int64
	window time.Duration
	events int64
	per    time.Duration
}

// tell formats the item of RateLimit-Policy, and the events per second with up to three decimals, as Spring Cloud Gateway does. Slots
// have neither a window nor a rate: one comes back whenever a request ends.
func (p *QuotaPolicy) tell(of told) {
	p.PolicyItem = strings.TrimSuffix(p.ItemPrefix, paramRemaining) + paramQuota + strconv.FormatInt(of.quota, 10)
	if p.Slots {
		p.PolicyItem += paramUnit
		return
	}
	p.PolicyItem += paramWindow + strconv.FormatInt(max(1, CeilSeconds(of.window)), 10)
	rate := strconv.FormatFloat(float64(of.events)/of.per.Seconds(), 'f', 3, 64)
	p.Replenish = strings.TrimSuffix(strings.TrimRight(rate, "0"), ".")
}

// Told returns the policy that headers describe for a decision, which may be by the limit of an override.
func (p *QuotaPolicy) Told(d *algorithms.Decision) *QuotaPolicy {
	if d.Override == "" {
		return p
	}
	params, own, _ := store.OverrideParams(d.Override, algorithms.Params{})
	of := p.toldOf(d.Quota, params, own)
	return p.variant(variant{told: of, overridden: true}, func() *store.Rule { return p.Rule })
}

// toldOf returns a limit of this quota as headers describe it. If its parameters are its own, they say in which time it comes back:
// those of slots and of calendar windows do not.
func (p *QuotaPolicy) toldOf(quota int64, params algorithms.Params, own bool) told {
	of := told{quota, p.Window.Length(), quota, p.Window.Length()}
	if !own {
		return of
	}
	of.per = time.Duration(params[2]) * time.Microsecond
	switch a := p.Rule.Algorithm().(type) {
	case algorithms.SlidingWindowLog, algorithms.SlidingWindowCounter:
		of.per = time.Duration(params[1]) * time.Microsecond
	case algorithms.FixedWindow:
	case algorithms.Counter: // a bucket, whose quota is the burst
		if quota > 0 {
			_, d := a.Take(algorithms.State{}, params, 0, quota)
			return told{quota, d.ResetAfter, params[1], of.per}
		}
	}
	of.window = of.per
	return of
}
