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

// NextSeconds returns the seconds until more quota is available, or 0 for concurrency limits,
// where that cannot be known.
func (p *QuotaPolicy) NextSeconds(d *algorithms.Decision) int64 {
	if p.Lends {
		return 0
	}
	return CeilSeconds(d.NextAfter)
}

// Wait returns how long a refusal holds. It is one window for a cost that can never be allowed.
func (p *QuotaPolicy) Wait(d *algorithms.Decision) time.Duration {
	if d.RetryAfter == algorithms.Never {
		return p.Numbers.Window.Length()
	}
	return d.RetryAfter
}

// Told returns the wait that a refused client is told: no less than the wait until more quota is
// available, although a queue may have a place for a request before, and hold it until then.
func (p *QuotaPolicy) Told(d *algorithms.Decision) time.Duration {
	if p.Lends {
		return p.Wait(d)
	}
	return max(p.Wait(d), d.NextAfter)
}

// Holds returns how long a refusal holds, to compare it with others. A slot may come back at any time, so a refusal for
// want of one holds for as long as its client is told.
func (p *QuotaPolicy) Holds(d *algorithms.Decision) time.Duration {
	if p.Lends && !d.Banned && d.RetryAfter != algorithms.Never {
		return SlotWait
	}
	return d.RetryAfter
}

// SlotWait is what a client is told to wait for a slot, which may come back at any time.
const SlotWait = time.Second

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
	p.PolicyItem = name + paramQuota + strconv.FormatInt(p.Quota, 10)
	if p.Lends {
		p.PolicyItem += paramUnit // no window: a slot comes back whenever a request ends
		return
	}
	p.PolicyItem += paramWindow + strconv.FormatInt(max(1, CeilSeconds(p.quotaWindow())), 10)
	p.Replenish = perSecond(p.Numbers.Events, p.Numbers.Window.Length())
}

// perSecond formats a rate in events per second, as Spring Cloud Gateway does, with up to three
// decimals.
func perSecond(events int64, window time.Duration) string {
	text := strconv.FormatFloat(float64(events)/window.Seconds(), 'f', 3, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// ForOverride returns a policy that has just the PolicyItem, for a key whose override has this
// quota. It has no window, because the store does not say which one the override has.
func (p *QuotaPolicy) ForOverride(quota int64) *QuotaPolicy {
	text := strings.TrimSuffix(p.ItemPrefix, paramRemaining) + paramQuota + strconv.FormatInt(quota, 10)
	if p.Lends {
		text += paramUnit
	}
	return &QuotaPolicy{PolicyItem: text}
}

// quotaWindow returns the time in which the whole quota comes back. That is not the window for a
// bucket whose burst differs from its events.
func (p *QuotaPolicy) quotaWindow() time.Duration {
	if bucket, ok := p.Rule.Algorithm().(algorithms.Counter); ok && p.Numbers.Burst > 0 && p.Numbers.Events > 0 {
		_, d := bucket.Take(algorithms.State{}, p.Rule.At(0).Params, 0, p.Numbers.Burst)
		return d.ResetAfter
	}
	return p.Numbers.Window.Length()
}
