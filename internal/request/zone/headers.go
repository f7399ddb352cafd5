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
	p.PolicyItem = p.item(name, p.Quota, p.quotaWindow())
	if !p.Slots {
		p.Replenish = perSecond(p.Numbers.Events, p.Window.Length())
	}
}

// item returns the item of RateLimit-Policy. That of slots has no window: a slot comes back whenever a request ends.
func (p *QuotaPolicy) item(name string, quota int64, window time.Duration) string {
	text := name + paramQuota + strconv.FormatInt(quota, 10)
	if p.Slots {
		return text + paramUnit
	}
	return text + paramWindow + strconv.FormatInt(max(1, CeilSeconds(window)), 10)
}

// perSecond formats a rate in events per second, as Spring Cloud Gateway does, with up to three
// decimals.
func perSecond(events int64, window time.Duration) string {
	text := strconv.FormatFloat(float64(events)/window.Seconds(), 'f', 3, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// ItemFor returns the item of RateLimit-Policy for a decision, which may be by the limit of an override.
func (p *QuotaPolicy) ItemFor(d *algorithms.Decision) string {
	if d.Override == "" {
		return p.PolicyItem
	}
	window := p.Window.Length()
	if params, own, _ := store.OverrideParams(d.Override, algorithms.Params{}); own {
		window = windowOf(p.Rule.Algorithm(), params)
	}
	return p.item(strings.TrimSuffix(p.ItemPrefix, paramRemaining), d.Quota, window)
}

// windowOf returns the time in which the whole quota of a limit comes back, given its parameters.
func windowOf(a algorithms.Algorithm, params algorithms.Params) time.Duration {
	switch a := a.(type) {
	case algorithms.SlidingWindowLog, algorithms.SlidingWindowCounter:
		return time.Duration(params[1]) * time.Microsecond
	case algorithms.FixedWindow:
		return time.Duration(params[2]) * time.Microsecond
	case algorithms.Counter:
		_, d := a.Take(algorithms.State{}, params, 0, params[0])
		return d.ResetAfter
	}
	return 0
}

// quotaWindow returns the time in which the whole quota comes back. That is not the window for a
// bucket whose burst differs from its events.
func (p *QuotaPolicy) quotaWindow() time.Duration {
	if bucket, ok := p.Rule.Algorithm().(algorithms.Counter); ok && p.Numbers.Burst > 0 && p.Numbers.Events > 0 {
		return windowOf(bucket, p.Rule.At(0).Params)
	}
	return p.Window.Length()
}
