// Package lending is the layer of zones that lend. Keys that come rarely are asked for as in zones that do not
// lend, because nothing is lent of most of them. What this process holds of other keys is spent without a call.
// The rest is asked for in one call, in which all that is decided together is charged or none. What this process
// holds is reserved meanwhile, and spent if all checks pass.
package lending

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/refusals"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Layer implements [layer.Layer].
type Layer struct {
	Config
	below layer.Layer

	Spared  atomic.Uint64 // requests that needed no call because of what is held
	Refused atomic.Uint64 // those that are refused without one
	done    chan struct{} // closed when all that is held has been given back
}

// Lender lends: the link.
type Lender interface {
	// AskTogether has asks about different keys decided together, for a request.
	AskTogether(ctx context.Context, asks []*link.Ask) error

	// AskEach has asks decided one after the other. No request waits for them.
	AskEach(ctx context.Context, asks []*link.Ask)
}

// Config is what the layer needs beside the one below it.
type Config struct {
	Lender   Lender
	Loans    *loans.Table
	PerCall  int // how many keys may share a call; 1: each needs its own
	Timeout  time.Duration
	Refusals *refusals.Layer // remembers those of the lender too; nil: nothing does

	// Changed notes for all processes that a key has got other rules. If it is nil, no key gets any.
	Changed func(ctx context.Context, rule *store.Rule, key string) error

	// Done is closed when the layer is to give back what is held, and to end.
	Done <-chan struct{}
}

// New puts lending on another layer.
func New(inner layer.Layer, c *Config) *Layer {
	return &Layer{Config: *c, below: inner, done: make(chan struct{})}
}

// Take implements [layer.Layer]. There are three kinds of requests: those with one check, of a zone that lends parts,
// as most are; others that meet a zone which lends; and those that meet none.
func (l *Layer) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if len(checks) == 1 && checks[0].Rule.LendsParts() && !checks[0].Peek {
		came := l.Loans.Now()
		spared, err := l.takeOne(ctx, checks, decisions, came, came)
		if spared {
			l.Spared.Add(1)
			return nil
		}
		return l.finish(checks, decisions, came, err)
	}
	for i := range checks {
		if checks[i].Rule.Lend() > 0 {
			came := l.Loans.Now()
			return l.finish(checks, decisions, came, l.takeSome(ctx, checks, decisions, came))
		}
	}
	return l.below.Take(ctx, checks, decisions)
}

// takeOne decides a check of a zone that lends, which is decided by itself. If this process holds enough, it is spent.
// If the key comes rarely, the request goes the way of a zone that does not lend. Only otherwise anything is put
// together for an ask. It reports whether no call was needed.
func (l *Layer) takeOne(ctx context.Context, checks []store.Check, decisions []algorithms.Decision, came, now lend.Moment) (spared bool, err error) {
	c := &checks[0]
	e, lent := l.Loans.Find(c.Rule, c.Key, c.Cost, now)
	switch {
	case e != nil && e.SpendNow(now, c.Cost, &decisions[0]):
		return true, nil
	case e == nil && !lent:
		if err := l.below.Take(ctx, checks, decisions); !errors.Is(err, protocol.ErrLent) {
			if err == nil {
				l.noteCharged(c, &decisions[0])
			}
			return false, err
		}
		e = l.Loans.FindLent(c.Rule, c.Key, c.Cost, l.Loans.Now())
	}
	r := lentRequest{came: came, checks: checks, decisions: decisions}
	r.together = append(r.room[:0], lentCheck{Check: c, entry: e})
	_, err = l.decideTogether(ctx, &r)
	return err == nil && !r.asked, err
}

// noteCharged tells the borrower of a key that Redis has charged it by itself, or that an override or a ban has decided.
func (l *Layer) noteCharged(c *store.Check, d *algorithms.Decision) {
	if e := l.Loans.Known(c.Rule, c.Key); e != nil {
		e.ChargedAlone(d.At, d.Remaining)
		if d.Exempt || d.Banned || d.Override != "" {
			e.OverruledAlone(l.Loans.Now())
		}
	}
}

// finish tells other processes of bans that begin, because they may hold something of these keys. If that fails, they
// learn of it when they ask. As where nothing is lent, a request that gets no answer is refused if its key just was.
func (l *Layer) finish(checks []store.Check, decisions []algorithms.Decision, came lend.Moment, err error) error {
	switch {
	case err == nil && l.Changed != nil:
		for i := range checks {
			if c := &checks[i]; decisions[i].BanBegins && c.Rule.Lend() > 0 {
				rule, key := c.Rule, c.Key
				go func() { _ = l.Changed(context.Background(), rule, key) }()
			}
		}
	case err != nil && l.Refusals != nil:
		ago := l.Loans.Now().Mono - came.Mono
		return l.Refusals.Refuse(checks, decisions, new(layer.Set), l.Refusals.Now()-ago, err)
	}
	return err
}

// Forget implements [layer.Layer].
func (l *Layer) Forget(rule *store.Rule, key string) {
	if rule.LendsParts() {
		l.Loans.Forget(rule.Zone(), key)
	}
	l.below.Forget(rule, key)
}

// Holds reports whether this process may hold something.
func (l *Layer) Holds() bool { return l.Loans.Size() > 0 }

// Void gives up what is held of some keys, because they have got other rules, and forgets what was remembered of their
// refusals.
func (l *Layer) Void(which func(zone, key string) bool) {
	for _, e := range l.Loans.Void(l.Loans.Now(), which) {
		l.below.Forget(e.Rule, e.Key)
	}
}

// Count adds what is held to the counts of a store.
func (l *Layer) Count(all *store.Stats) {
	all.Lent, all.Loans = l.Loans.Held(l.Loans.Now())
	all.Spared = l.Spared.Load()
}

// Wait returns when all has been given back. Done must be closed.
func (l *Layer) Wait() { <-l.done }
