package clientip

import (
	"sync/atomic"
	"time"
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
}

// Look counts a request that is looked at.
func (f *Forwarded) Look() { f.looked.Add(1) }

// Note counts a request from a proxy that is not trusted, and remembers it, unless the last one came
// from the same proxy within a second.
func (f *Forwarded) Note(field, remote string) {
	f.forwarded.Add(1)
	now := time.Now()
	if last := f.last.Load(); last != nil && last.Remote == remote && now.Sub(last.At) < time.Second {
		return
	}
	f.last.Store(&Forwarding{now, field, remote})
}

// Last returns the last request from a proxy that is not trusted; nil if there was none.
func (f *Forwarded) Last() *Forwarding { return f.last.Load() }

// Counts returns how many requests were looked at, and how many of them were forwarded by a proxy
// that is not trusted.
func (f *Forwarded) Counts() (looked, forwarded uint64) { return f.looked.Load(), f.forwarded.Load() }
