package clientip

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
)

// What to do about a proxy whose clients share one limit.
var (
	TrustProxy    = advice.New("proxy/trust", "if it is your proxy, add it to trusted_proxies in the global servers option")
	TrustStrictly = advice.New("proxy/strict", "if it is your proxy, add it to trusted_proxies in the global servers option, and set trusted_proxies_strict there")
	TrustSocket   = advice.New("proxy/socket", "if it is your proxy, set trusted_proxies_unix and trusted_proxies_strict in the global servers option")
	ReadHeader    = advice.New("proxy/header", "if it is your proxy, add it to trusted_proxies and %s to client_ip_headers, in the global servers option")
	SendForwarded = advice.New("proxy/forwarded", "if it is your proxy, have it send X-Forwarded-For, which Caddy reads, add it to trusted_proxies in the global servers option, and set trusted_proxies_strict there")
	KeyByClient   = advice.New("proxy/key", "if it is your proxy, add it to trusted_proxies in the global servers option, set trusted_proxies_strict there, and use {client_ip} in the key")
	KeyOfTrusted  = advice.New("proxy/key/trusted", "if it is your proxy, use {client_ip} in the key")
)

// Forwarded knows how many of the requests that were looked at came from proxies which Caddy does
// not trust. The zero Forwarded is ready to use, from several goroutines at once.
type Forwarded struct {
	looked, forwarded atomic.Uint64
	last              atomic.Pointer[Forwarding]
}

// Forwarding is a request from a proxy.
type Forwarding struct {
	At     time.Time
	Field  string // the header in which the proxy passes on its client's address
	Remote string // the address of the proxy
	Behind bool   // a trusted proxy has passed on the request of this one
	Found  string // what is wrong
	Fix    advice.Text
}

// sample is how many of a zone's first requests are looked at. After these, one in so many is.
const sample = 64

// Look reports whether to look at a request, and counts those that are looked at.
func (f *Forwarded) Look() bool {
	if f.looked.Load() >= sample && rand.Uint32N(sample) > 0 {
		return false
	}
	f.looked.Add(1)
	return true
}

// Note counts a request from a proxy that is not trusted, and remembers it.
func (f *Forwarded) Note(seen Forwarding) {
	f.forwarded.Add(1)
	seen.At = time.Now()
	f.last.Store(&seen)
}

// Last returns the last request from a proxy that is not trusted; nil if there was none.
func (f *Forwarded) Last() *Forwarding { return f.last.Load() }

// Counts returns how many requests were looked at, and how many of them were forwarded by a proxy
// that is not trusted.
func (f *Forwarded) Counts() (looked, forwarded uint64) { return f.looked.Load(), f.forwarded.Load() }

// IsProxy reports whether so many of the requests were forwarded that they come from a proxy, and not from
// clients that write the header themselves, or use proxies of their own.
func (f *Forwarded) IsProxy() bool {
	looked, forwarded := f.Counts()
	if last := f.Last(); last != nil && last.Behind {
		return looked >= 10 && forwarded*2 >= looked
	}
	return forwarded > 0 && forwarded*10 >= looked
}
