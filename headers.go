package caddyratelimit

import (
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// What headers can be.
const (
	headersDraft10 = "draft-10"
	headersOff     = "off"
)

// The names of draft-ietf-httpapi-ratelimit-headers-10, which the next draft renames.
// The field names are as net/http writes them.
const (
	fieldRateLimit  = "Ratelimit"
	fieldPolicy     = "Ratelimit-Policy"
	paramQuota      = ";q="
	paramWindow     = ";w="
	paramRemaining  = ";r="
	paramNextQuota  = ";t="
	paramUnit       = `;qu="concurrent-requests"`
	fieldRetryAfter = "Retry-After"
)

// answer writes what clients get to see.
type answer struct {
	draft10 bool
	jitter  float64
	all     string // RateLimit-Policy where a request met all zones; empty if it depends
	zones   int
}

func newAnswer(h *Handler) answer {
	a := answer{draft10: h.Headers[0] == headersDraft10, zones: len(h.zones)}
	if h.Jitter != nil {
		a.jitter = *h.Jitter
	}
	for _, z := range h.zones {
		if z.grant == nil || z.special {
			return a // requests that met all zones may be told of different limits
		}
		a.all = appendPolicy(a.all, z.grant)
	}
	return a
}

// setHeaders writes the header fields of a decision.
func (a *answer) setHeaders(header http.Header, t *attempt, binding int) {
	g, d := t.grants[binding], &t.decisions[binding]
	next := seconds(d.NextAfter)
	if g.lends {
		next = 0
	}
	if !d.Allowed {
		// A handler before this one may have told of limits that passed.
		header.Del(fieldRateLimit)
		header.Del(fieldPolicy)
		header[fieldRetryAfter] = []string{strconv.FormatInt(max(next, a.retryAfter(g, d)), 10)}
	}
	if !a.draft10 {
		return
	}
	policy := a.all
	if policy == "" || len(t.zones) != a.zones {
		policy = t.policies()
	}
	// A slice of its own, for handlers behind may change values where they stand.
	header[fieldPolicy] = []string{policy}
	var room [96]byte
	b := append(room[:0], g.item...)
	b = strconv.AppendInt(b, d.Remaining, 10)
	if next > 0 {
		b = append(b, paramNextQuota...)
		b = strconv.AppendInt(b, next, 10)
	}
	header[fieldRateLimit] = []string{string(b)}
}

// retryAfter is the wait in whole seconds, never shorter than it is. What will never be
// granted may be asked for again after a window.
func (a *answer) retryAfter(g *grant, d *algorithms.Decision) int64 {
	wait := d.RetryAfter
	switch {
	case wait == algorithms.Never:
		wait = g.numbers.window.length()
	case g.lends:
		wait = time.Second // a slot may come back at any time
	}
	if a.jitter > 0 {
		wait += time.Duration(rand.Float64() * a.jitter * float64(wait))
	}
	return max(1, seconds(wait))
}

// seconds rounds up.
func seconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

// policies is the value of RateLimit-Policy for the zones that may refuse a request.
func (a *attempt) policies() (text string) {
	for _, g := range a.grants[:a.firm] {
		text = appendPolicy(text, g)
	}
	return text
}

func appendPolicy(text string, g *grant) string {
	if text == "" {
		return g.policy
	}
	return text + ", " + g.policy
}

// prepareHeaders writes what the items always begin with.
func (g *grant) prepareHeaders() {
	name, err := httpsfv.Marshal(httpsfv.NewItem(g.rule.Zone()))
	if err != nil {
		// A structured field's text is ASCII; a zone's name is what one likes.
		name = `"` + store.Escape(g.rule.Zone()) + `"`
	}
	g.item = name + paramRemaining
	g.policy = name + paramQuota + strconv.FormatInt(g.quota, 10)
	if g.lends {
		g.policy += paramUnit // a slot comes back when a request ends, and nobody knows when
	} else {
		g.policy += paramWindow + strconv.FormatInt(max(1, seconds(g.quotaWindow())), 10)
	}
}

// quotaWindow is the time in which the whole quota comes back: for a bucket whose burst
// is not its events that is not the window.
func (g *grant) quotaWindow() time.Duration {
	if bucket, ok := g.rule.Algorithm().(algorithms.Counter); ok && g.numbers.burst > 0 && g.numbers.events > 0 {
		_, d := bucket.Take(algorithms.State{}, g.rule.At(0).Params, 0, g.numbers.burst)
		return d.ResetAfter
	}
	return g.numbers.window.length()
}

// remoteIP is the address of the connection's other end.
func remoteIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
