// Package link is the innermost layer: it makes a request of checks, has a server decide it, and looks after
// what was charged. Below it are the servers: one, or those of a Cluster.
package link

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/throttle"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/keys"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/outbox"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Config is what a link needs.
type Config struct {
	Servers Servers
	Keys    keys.Prefix
	Script  *atomic.Pointer[protocol.Script]
	Today   *layer.Date
	Clock   func() time.Time // by which leases fall due
	Logger  func() *zap.Logger

	// Ends reports whether the process is about to end.
	Ends func() bool

	// Done is closed when the link is to give back what is held, and to end.
	Done <-chan struct{}
}

// Link implements [layer.Layer].
type Link struct {
	Config
	requests sync.Pool

	Leases  store.Leases
	Outbox  *outbox.Outbox
	sending sync.Mutex    // held while adjustments are under way
	lingers bool          // when the link is closed, something still waits; see linger
	done    chan struct{} // closed when adjustments have ended

	damaged, losing throttle.Throttle // what was last warned of
}

// New makes a link. It asks nothing before Run.
func New(c *Config) *Link {
	l := &Link{Config: *c, Outbox: outbox.New(), done: make(chan struct{})}
	l.requests.New = func() any { return node.NewRequest() }
	return l
}

// Take implements [layer.Layer] with one call of the script, which it may share with others.
func (l *Link) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	return l.TakeSlot(ctx, checks, decisions, false)
}

// TakeSlot decides a part of a request, whose keys have one slot. It costs nothing if there is no server to ask. Amid says that others of
// its checks are decided together, so that a check which is decided by itself holds them up with no error.
func (l *Link) TakeSlot(ctx context.Context, checks []store.Check, decisions []algorithms.Decision, amid bool) error {
	slot := l.Slot(&checks[0])
	s, err := l.Servers.Node(ctx, slot)
	if err == nil {
		err = s.Ready(ctx)
	}
	if err != nil {
		l.Servers.ReportFailure()
		return err
	}
	r := l.requests.Get().(*node.Request)
	r.Slot = slot
	l.fill(r, checks, amid)
	err = l.send(ctx, r)
	switch {
	case err == nil:
		copy(decisions, r.Decisions)
		if r.Damaged != nil {
			l.warnDamaged(r.Damaged.Zone())
		}
		l.noteLeases(r, checks)
		r.Clear()
		l.requests.Put(r) // only an answered one: the answer to another may be on its way
	case node.MayHaveRun(err):
		l.giveBackLost(checks)
	}
	return err
}

// fill makes a request of checks: a group of those to decide together, and one for each that is decided by
// itself.
func (l *Link) fill(r *node.Request, checks []store.Check, amid bool) {
	r.AllAlone = !amid
	for i := range checks {
		if c := &checks[i]; !c.Alone() {
			r.AllAlone = false
			r.Ops = append(r.Ops, l.op(c, protocol.Decide, c.LeaseID, i))
		}
	}
	r.EndGroup()
	for i := range checks {
		if c := &checks[i]; c.Alone() {
			kind, leaseID := protocol.Decide, c.LeaseID
			if c.Peek {
				kind, leaseID = protocol.Peek, ""
			}
			op := l.op(c, kind, leaseID, i)
			op.Alone = true
			r.Ops = append(r.Ops, op)
			r.EndGroup()
		}
	}
	r.Expect(len(checks))
}

// op makes a check ready for the script.
func (l *Link) op(c *store.Check, kind protocol.Kind, leaseID string, index int) protocol.Op {
	o := protocol.Op{
		Rule: c.Rule, Prepared: l.Today.At(c.Rule), Key: l.Keys.State(c.Rule.ID(), c.Key),
		Cost: c.Cost, LeaseID: leaseID, Kind: kind, Index: index,
	}
	if kind == protocol.Decide && c.Rule.Limit().Hold > 0 {
		o.Ahead = min(c.Ahead, protocol.MaxAhead)
	}
	if c.KeyRules != nil && (kind == protocol.Decide || kind == protocol.Peek) {
		o.KeyRules = l.keyRules(c)
	}
	return o
}

// keyRules is what the script is to look at beside the state of a check.
func (l *Link) keyRules(c *store.Check) *protocol.KeyRules {
	k := &protocol.KeyRules{KeyRules: c.KeyRules}
	if c.KeyRules.Overrides {
		k.Override = l.Keys.Override(c.Rule, c.Key)
	}
	if c.KeyRules.Ban != nil {
		k.BanState = l.Keys.Ban(c.Rule, c.Key)
	}
	return k
}

// Slot returns the slot of a check's keys. With one, nobody needs the tag, which takes 7 % of a decision's time here.
func (l *Link) Slot(c *store.Check) uint16 {
	if l.Servers.OneSlot() {
		return 0
	}
	return l.Servers.Slot(keys.Tag(c.Key))
}

// send has a request answered by the server that has its keys. The servers hear of a failure, unless another one would not
// have more room or time, or decide differently.
func (l *Link) send(ctx context.Context, r *node.Request) error {
	err := l.follow(ctx, r.Slot, func(s Server, asking bool) error { return s.Do(ctx, r, asking) })
	if err != nil && !errors.Is(err, store.ErrFull) && !errors.Is(err, store.ErrBusy) && !errors.Is(err, node.ErrLate) {
		l.Servers.ReportFailure()
	}
	return err
}

// noteLeases notes the leases that were made, so that it is renewed.
func (l *Link) noteLeases(r *node.Request, checks []store.Check) {
	for group := range r.Groups() {
		if r.Charged(group) {
			for i := range group {
				if op := &group[i]; op.LeaseID != "" && !r.Decisions[op.Index].Exempt {
					l.Leases.Add(&checks[op.Index], l.Clock())
				}
			}
		}
	}
}

// giveBackLost gives back slots that may have been taken by a call whose answer never came. The call may come to Redis later than
// that, so what is not there is given back again.
func (l *Link) giveBackLost(checks []store.Check) {
	for i := range checks {
		if c := &checks[i]; c.LeaseID != "" && !c.Peek {
			l.Outbox.AddLost(store.Adjustment{Check: *c, Delta: -c.Cost})
		}
	}
}

// Forget implements [layer.Layer]: a link knows nothing of a key.
func (l *Link) Forget(*store.Rule, string) {}

// warnDamaged says that a stored state was damaged.
func (l *Link) warnDamaged(zone string) {
	if l.damaged.Allow() {
		l.Logger().Warn("a state in redis is damaged or of another version: it counts as empty, and the next charge replaces it",
			zap.String("zone", zone), zap.String("key_prefix", string(l.Keys)))
	}
}
