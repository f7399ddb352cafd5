package node

import (
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
)

// An address may lead to another server than before: a name or a virtual address follows the master. Connections that
// were made before still lead to the old one. Each of them would cost a call to find that out. So if Redis says on one
// that it is not the master, no connection that was made before is used any more.

// trust is which connections of a node are used.
type trust struct {
	since atomic.Int64 // those that were made later, in nanoseconds since began
}

// trustTime is for how long connections are trusted at least since others were given up: a server that stays a replica
// would have each call make a new one.
const trustTime = 100 * time.Millisecond

// end has connections no longer used that were made by now. It does nothing soon after it has done so.
func (t *trust) end() {
	now, last := int64(time.Since(began)), t.since.Load()
	if last == 0 || now-last >= int64(trustTime) {
		t.since.CompareAndSwap(last, now)
	}
}

// has reports whether a connection is used whose making was begun at a time.
func (t *trust) has(made time.Duration) bool {
	since := t.since.Load()
	return since == 0 || int64(made) > since
}

// heed looks whether an error says that the server is not the master, or not any more.
func (n *Node) heed(err error) {
	if err == nil {
		return
	}
	var said redis.Error // which is allocated
	if errors.As(err, &said) && protocol.ReadError(said.Error()).Demoted() {
		n.dials.trust.end()
	}
}

// trusting has a connection say that it is closed when it is not to be used any more.
func (t *trust) trusting(conn net.Conn, made time.Duration) {
	if b, ok := conn.(interface {
		trustedBy(t *trust, made time.Duration)
	}); ok {
		b.trustedBy(t, made)
	}
}

func (b *bounded) trustedBy(t *trust, made time.Duration) { b.trust, b.made = t, made }

// trusted reports whether the connection may be used for a call.
func (b *bounded) trusted() bool { return b.trust == nil || b.trust.has(b.made) }
