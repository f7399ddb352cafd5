package zone

import (
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// The parameters of draft-ietf-httpapi-ratelimit-headers-10, which the next draft
// renames.
const (
	paramQuota     = ";q="
	paramWindow    = ";w="
	paramRemaining = ";r="
	ParamNextQuota = ";t="
	paramUnit      = `;qu="concurrent-requests"`
)

// NextSeconds is when there is more quota, in whole seconds. Of slots nobody knows.
func (g *QuotaPolicy) NextSeconds(d *algorithms.Decision) int64 {
	if g.Lends {
		return 0
	}
	return CeilSeconds(d.NextAfter)
}

// Wait is how long a refusal holds. What will never be granted may be asked for again
// after a window.
func (g *QuotaPolicy) Wait(d *algorithms.Decision) time.Duration {
	if d.RetryAfter == algorithms.Never {
		return g.Numbers.Window.Length()
	}
	return d.RetryAfter
}

// CeilSeconds rounds up.
func CeilSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

// prepareHeaders writes what the items always begin with.
func (g *QuotaPolicy) prepareHeaders() {
	g.HeaderZone = g.Rule.Zone()
	name, err := httpsfv.Marshal(httpsfv.NewItem(g.HeaderZone))
	if err != nil {
		// A structured field's text is ASCII; a zone's name is what one likes.
		g.HeaderZone = store.Escape(g.HeaderZone)
		name = `"` + g.HeaderZone + `"`
	}
	g.ItemPrefix = name + paramRemaining
	g.PolicyItem = name + paramQuota + strconv.FormatInt(g.Quota, 10)
	if g.Lends {
		g.PolicyItem += paramUnit // a slot comes back when a request ends, and nobody knows when
		return
	}
	g.PolicyItem += paramWindow + strconv.FormatInt(max(1, CeilSeconds(g.quotaWindow())), 10)
	g.Replenish = perSecond(g.Numbers.Events, g.Numbers.Window.Length())
}

// perSecond writes a rate as Spring Cloud Gateway knows it, with up to three decimals
// where it is no whole number.
func perSecond(events int64, window time.Duration) string {
	text := strconv.FormatFloat(float64(events)/window.Seconds(), 'f', 3, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// ForOverride tells the policy of a key that has a limit of its own. Its window is not known here.
func (g *QuotaPolicy) ForOverride(quota int64) *QuotaPolicy {
	text := strings.TrimSuffix(g.ItemPrefix, paramRemaining) + paramQuota + strconv.FormatInt(quota, 10)
	if g.Lends {
		text += paramUnit
	}
	return &QuotaPolicy{PolicyItem: text}
}

// quotaWindow is the time in which the whole quota comes back: for a bucket whose burst
// is not its events that is not the window.
func (g *QuotaPolicy) quotaWindow() time.Duration {
	if bucket, ok := g.Rule.Algorithm().(algorithms.Counter); ok && g.Numbers.Burst > 0 && g.Numbers.Events > 0 {
		_, d := bucket.Take(algorithms.State{}, g.Rule.At(0).Params, 0, g.Numbers.Burst)
		return d.ResetAfter
	}
	return g.Numbers.Window.Length()
}
