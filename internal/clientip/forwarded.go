package clientip

import (
	"sync/atomic"
	"time"
)

// Forwarded remembers the last request that was seen from a proxy which Caddy does not trust. The
// zero Forwarded is ready to use, from several goroutines at once.
type Forwarded struct{ last atomic.Pointer[Forwarding] }

// Forwarding is a request from a proxy.
type Forwarding struct {
	At     time.Time
	Field  string // the header field in which the proxy passes on its client's address
	Remote string // the address of the proxy
}

// Note remembers a request, unless the last one came from the same proxy within a second.
func (f *Forwarded) Note(field, remote string) {
	now := time.Now()
	if last := f.last.Load(); last != nil && last.Remote == remote && now.Sub(last.At) < time.Second {
		return
	}
	f.last.Store(&Forwarding{now, field, remote})
}

// Last returns the last request; nil if there was none.
func (f *Forwarded) Last() *Forwarding { return f.last.Load() }
