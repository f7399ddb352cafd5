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
	of := p.toldOf(p.Quota, p.Rule.At(0).Params, p.Window.Calendar == 0 && !p.Slots)
	p.PolicyItem, p.Replenish = p.item(of), p.rate(of)
}

// told is a limit as headers describe it: a quota, in which time all of it comes back, and how many events come back in which time.
type told struct {
	quota  int64
	window time.Duration
	events int64
	per    time.Duration
}

// item returns the item of RateLimit-Policy. That of slots has no window: a slot comes back whenever a request ends.
func (p *QuotaPolicy) item(of told) string {
	text := strings.TrimSuffix(p.ItemPrefix, paramRemaining) + paramQuota + strconv.FormatInt(of.quota, 10)
	if p.Slots {
		return text + paramUnit
	}
	return text + paramWindow + strconv.FormatInt(max(1, CeilSeconds(of.window)), 10)
}

// rate returns the events per second with up to three decimals, as Spring Cloud Gateway does. Slots have none.
func (p *QuotaPolicy) rate(of told) string {
	if p.Slots {
		return ""
	}
	text := strconv.FormatFloat(float64(of.events)/of.per.Seconds(), 'f', 3, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// ItemFor returns the item of RateLimit-Policy for a decision by an override, or by the limit itself if that is empty.
func (p *QuotaPolicy) ItemFor(override string, quota int64) string {
	if override == "" {
		return p.PolicyItem
	}
	return p.item(p.overridden(override, quota))
}

// ReplenishFor returns the events per second for a decision by an override, or by the limit itself if that is empty.
func (p *QuotaPolicy) ReplenishFor(override string, quota int64) string {
	if override == "" {
		return p.Replenish
	}
	return p.rate(p.overridden(override, quota))
}

func (p *QuotaPolicy) overridden(override string, quota int64) told {
	params, own, _ := store.OverrideParams(override, algorithms.Params{})
	return p.toldOf(quota, params, own)
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
