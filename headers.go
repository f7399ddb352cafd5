package caddyratelimit

import (
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
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
	all     string // RateLimit-Policy where a request met all zones
	zones   int
}

func newAnswer(h *Handler) answer {
	a := answer{draft10: h.Headers[0] == headersDraft10, zones: len(h.zones)}
	if h.Jitter != nil {
		a.jitter = *h.Jitter
	}
	a.all = policies(h.zones)
	return a
}

// setHeaders writes the header fields of a decision.
func (a *answer) setHeaders(header http.Header, t *attempt, binding int) {
	z, d := t.zones[binding], &t.decisions[binding]
	next := seconds(d.NextAfter)
	if z.lends {
		next = 0
	}
	if !d.Allowed {
		// A handler before this one may have told of limits that passed.
		header.Del(fieldRateLimit)
		header.Del(fieldPolicy)
		header[fieldRetryAfter] = []string{strconv.FormatInt(max(next, a.retryAfter(z, d)), 10)}
	}
	if !a.draft10 {
		return
	}
	policy := a.all
	if len(t.zones) != a.zones {
		policy = policies(t.zones)
	}
	// A slice of its own, for handlers behind may change values where they stand.
	header[fieldPolicy] = []string{policy}
	var room [96]byte
	b := append(room[:0], z.item...)
	b = strconv.AppendInt(b, d.Remaining, 10)
	if next > 0 {
		b = append(b, paramNextQuota...)
		b = strconv.AppendInt(b, next, 10)
	}
	header[fieldRateLimit] = []string{string(b)}
}

// retryAfter is the wait in whole seconds, never shorter than it is. What will never be
// granted may be asked for again after a window.
func (a *answer) retryAfter(z *Zone, d *algorithms.Decision) int64 {
	wait := d.RetryAfter
	switch {
	case wait == algorithms.Never:
		wait = z.Window.length()
	case z.lends:
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

// policies is the value of RateLimit-Policy for some zones.
func policies(zones []*Zone) string {
	items := make([]string, len(zones))
	for i, z := range zones {
		items[i] = z.policy
	}
	return strings.Join(items, ", ")
}

// prepareHeaders writes what the zone's items always begin with.
func (z *Zone) prepareHeaders() {
	name, err := httpsfv.Marshal(httpsfv.NewItem(z.name))
	if err != nil {
		// A structured field's text is ASCII; a zone's name is what one likes.
		name = `"` + store.Escape(z.name) + `"`
	}
	z.item = name + paramRemaining
	z.policy = name + paramQuota + strconv.FormatInt(z.quota(), 10)
	if z.lends {
		z.policy += paramUnit // a slot comes back when a request ends, and nobody knows when
	} else {
		z.policy += paramWindow + strconv.FormatInt(max(1, seconds(z.quotaWindow())), 10)
	}
}

// quotaWindow is the time in which the whole quota comes back: for a bucket whose burst
// is not its events that is not the window.
func (z *Zone) quotaWindow() time.Duration {
	if bucket, ok := z.rule.Algorithm().(algorithms.Counter); ok && z.Burst > 0 && *z.MaxEvents > 0 {
		_, d := bucket.Take(algorithms.State{}, z.rule.At(0).Params, 0, z.Burst)
		return d.ResetAfter
	}
	return z.Window.length()
}

// remoteIP is the address of the connection's other end.
func remoteIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
