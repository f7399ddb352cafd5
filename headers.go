package caddyratelimit

import (
	"math/rand/v2"
	"net/http"
	"slices"
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
	paramQuota      = ";q="
	paramWindow     = ";w="
	paramRemaining  = ";r="
	paramNextQuota  = ";t="
	paramUnit       = `;qu="concurrent-requests"`
	fieldRetryAfter = "Retry-After"
)

// answer writes what clients get to see.
type answer struct {
	fields fieldNames
	jitter float64
	all    string // RateLimit-Policy where a request met all zones; empty if it depends
	zones  int
}

func newAnswer(h *Handler, names fieldNames) *answer {
	a := &answer{fields: names, zones: len(h.zones)}
	if h.Jitter != nil {
		a.jitter = *h.Jitter
	}
	if slices.ContainsFunc(h.zones, func(z *liveZone) bool { return z.special || z.Overrides }) {
		return a // requests that met all zones may be told of different limits
	}
	for _, z := range h.zones {
		a.all = appendPolicy(a.all, z.grant)
	}
	return a
}

// setHeaders writes the header fields of a decision. Each value has a slice of its own,
// for handlers behind may change values where they stand.
func (a *answer) setHeaders(header http.Header, t *told, values []string) {
	for i, f := range a.fields.sent {
		name := a.fields.names[i]
		if values[i] = t.value(f); values[i] == "" {
			delete(header, name)
			continue
		}
		header[name] = values[i : i+1 : i+1]
	}
}

// value is what a field says, "" if it has nothing to say.
func (t *told) value(f field) string {
	g, d := t.grant, &t.decision
	switch f {
	case rateLimitField:
		var room [96]byte
		b := append(room[:0], g.item...)
		b = strconv.AppendInt(b, d.Remaining, 10)
		if next := g.next(d); next > 0 {
			b = append(b, paramNextQuota...)
			b = strconv.AppendInt(b, next, 10)
		}
		return string(b)
	case policyField:
		return t.policy
	case limitField, burstField:
		return strconv.FormatInt(d.Quota, 10)
	case remainingField:
		return strconv.FormatInt(d.Remaining, 10)
	case resetField:
		if !g.lends { // nobody knows when slots come back
			return strconv.FormatInt(t.reset(), 10)
		}
	case retryAfterField:
		if t.retryAfter > 0 {
			return strconv.FormatInt(t.retryAfter, 10)
		}
	case replenishField:
		return g.replenish
	case requestedField:
		return strconv.FormatInt(t.cost, 10)
	}
	return ""
}

// reset is when the full quota is back, in whole seconds. What was refused may be asked
// for by then.
func (t *told) reset() int64 { return max(seconds(t.decision.ResetAfter), t.retryAfter) }

// next is when there is more quota, in whole seconds. Of slots nobody knows.
func (g *grant) next(d *algorithms.Decision) int64 {
	if g.lends {
		return 0
	}
	return seconds(d.NextAfter)
}

// retryAfter is the wait in whole seconds, never shorter than it is.
func (a *answer) retryAfter(g *grant, d *algorithms.Decision) int64 {
	wait := g.wait(d)
	if g.lends && !d.Banned {
		wait = time.Second // a slot may come back at any time
	}
	if a.jitter > 0 {
		wait += time.Duration(rand.Float64() * a.jitter * float64(wait))
	}
	return max(1, g.next(d), seconds(wait))
}

// wait is how long a refusal holds. What will never be granted may be asked for again
// after a window.
func (g *grant) wait(d *algorithms.Decision) time.Duration {
	if d.RetryAfter == algorithms.Never {
		return g.numbers.Window.Length()
	}
	return d.RetryAfter
}

// seconds rounds up.
func seconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

// policy is the value of RateLimit-Policy for the zones that may refuse a request.
func (a *answer) policy(t *attempt) (text string) {
	if a.all != "" && len(t.zones) == a.zones {
		return a.all
	}
	for i := range t.firm {
		text = appendPolicy(text, t.policyOf(i))
	}
	return text
}

// policyOf has the policy that holds for the key in a zone.
func (a *attempt) policyOf(i int) *grant {
	if d := &a.decisions[i]; d.Own != "" {
		return a.grants[i].ofOwn(d.Quota)
	}
	return a.grants[i]
}

const policySeparator = ", "

func appendPolicy(text string, g *grant) string {
	if text == "" {
		return g.policy
	}
	return text + policySeparator + g.policy
}

// hasPolicy tells whether an item is among those of a RateLimit-Policy.
func hasPolicy(text string, g *grant) bool {
	return strings.Contains(policySeparator+text+policySeparator, policySeparator+g.policy+policySeparator)
}

// prepareHeaders writes what the items always begin with.
func (g *grant) prepareHeaders() {
	g.shown = g.rule.Zone()
	name, err := httpsfv.Marshal(httpsfv.NewItem(g.shown))
	if err != nil {
		// A structured field's text is ASCII; a zone's name is what one likes.
		g.shown = store.Escape(g.shown)
		name = `"` + g.shown + `"`
	}
	g.item = name + paramRemaining
	g.policy = name + paramQuota + strconv.FormatInt(g.quota, 10)
	if g.lends {
		g.policy += paramUnit // a slot comes back when a request ends, and nobody knows when
		return
	}
	g.policy += paramWindow + strconv.FormatInt(max(1, seconds(g.quotaWindow())), 10)
	g.replenish = perSecond(g.numbers.Events, g.numbers.Window.Length())
}

// perSecond writes a rate as Spring Cloud Gateway knows it, with up to three decimals
// where it is no whole number.
func perSecond(events int64, window time.Duration) string {
	text := strconv.FormatFloat(float64(events)/window.Seconds(), 'f', 3, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// ofOwn tells the policy of a key that has a limit of its own. Its window is not known here.
func (g *grant) ofOwn(quota int64) *grant {
	text := strings.TrimSuffix(g.item, paramRemaining) + paramQuota + strconv.FormatInt(quota, 10)
	if g.lends {
		text += paramUnit
	}
	return &grant{policy: text}
}

// quotaWindow is the time in which the whole quota comes back: for a bucket whose burst
// is not its events that is not the window.
func (g *grant) quotaWindow() time.Duration {
	if bucket, ok := g.rule.Algorithm().(algorithms.Counter); ok && g.numbers.Burst > 0 && g.numbers.Events > 0 {
		_, d := bucket.Take(algorithms.State{}, g.rule.At(0).Params, 0, g.numbers.Burst)
		return d.ResetAfter
	}
	return g.numbers.Window.Length()
}
