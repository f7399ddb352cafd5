package zone

import (
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// blocks refuses a request that the option block matches. It reports whether it has done so.
func (z *Zone) blocks(c *Check, r *placeholder.Request) (refused bool, err error) {
	c.DryRun = z.IsDryRun(c.Key)
	if refused, err = clientip.MatchAny(z.Block, r.Request); refused && err == nil {
		err = c.reject(z.BlockStatus, errBlocked)
	}
	return refused, err
}

// bansNetwork refuses a request whose network or group is banned. It reports whether it has done so.
func (z *Zone) bansNetwork(c *Check, r *placeholder.Request, networks *store.Networks) (refused bool) {
	if !networks.Any() {
		return false
	}
	if n := z.overruling(c, r, networks); n == nil || n.Override.Kind != store.KindBanned {
		return false
	}
	z.applyNetwork(c, r, networks)
	return c.Rejection != nil
}

// refuseUnread refuses a request of a zone with json_body before its body is read, if block matches it, or its network or group is
// banned. Otherwise a client could have this process read and keep bodies that nobody wants. It reports whether it has refused
// the request.
func (z *Zone) refuseUnread(c *Check, r *placeholder.Request, networks *store.Networks) (refused bool, err error) {
	if len(z.Block) == 0 && !networks.Any() {
		return false, nil
	}
	r.Fields = unread
	c.Key, c.Repeated = z.Template.Expand(r)
	r.Fields = nil
	if refused, err = z.blocks(c, r); refused || err != nil || !networks.Any() {
		return refused, err
	}
	if exempt, err := clientip.MatchAny(z.Exempt, r.Request); err != nil || exempt || c.Repeated != nil || z.resolve(c, r) != nil || c.Policy == nil {
		return false, err // the rest decides
	}
	return z.bansNetwork(c, r, networks), nil
}
