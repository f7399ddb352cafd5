// Package widen widens the bans of keys to their network: if enough keys of it are banned at once in the fleet, and hardly any
// other key of it passes, the network is banned, too.
//
// The store counts the banned keys, for all instances. A network of which enough are banned becomes a suspect. From then on all
// instances watch it, and note in the store which of its other keys pass. When it was watched for a minute, the first instance that
// looks has the store decide, which it does once. Requests are not delayed by any of this, because a goroutine does it. What they
// meet is an override of the network, as an operator could have set it.
package widen

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// defaultEvery is how often an instance asks for suspects, and defaultWatched how long a network is watched before a decision.
	defaultEvery   = 5 * time.Second
	defaultWatched = time.Minute

	// maxWaiting is how many bans wait to be noted. Of more, the network does not learn.
	maxWaiting = 1024

	// callTimeout bounds a call of the store, beside its own bounds.
	callTimeout = 5 * time.Second
)

// Config configures a Widener.
type Config struct {
	Zones []*zone.Zone
	Store *pool.Ref

	// Decided is told the decisions of this instance.
	Decided func(z *zone.Zone, of store.Widening)

	Logger *zap.Logger

	// Every is how often the store is asked, and Watched how long a network is watched. 0 means the default.
	Every, Watched time.Duration
}

// Widener widens the bans of one handler's zones. Its methods may be called from many goroutines at once. The nil Widener does
// nothing.
type Widener struct {
	Config
	begun chan begun
	unset []*unset // bans of networks that the store has not taken yet
	quit  chan struct{}
	done  sync.WaitGroup
	once  sync.Once // for Start
	ended sync.Once
}

// begun is a ban of a key that has begun.
type begun struct {
	zone *zone.Zone
	key  string
	left time.Duration
}

// New makes a Widener, which does nothing before Start. It is nil if no zone widens bans.
func New(c Config) *Widener {
	var zones []*zone.Zone
	for _, z := range c.Zones {
		if z.Widen != nil {
			zones = append(zones, z)
		}
	}
	if zones == nil {
		return nil
	}
	if c.Every == 0 {
		c.Every, c.Watched = defaultEvery, defaultWatched
	}
	c.Zones = zones
	return &Widener{Config: c, begun: make(chan begun, maxWaiting), quit: make(chan struct{})}
}

// Start lets the Widener ask the store, until Close. A config that is only checked asks nothing.
func (w *Widener) Start() {
	if w != nil {
		w.once.Do(func() { w.done.Go(w.run) })
	}
}

// Note notes the bans that begin with a request. It does not wait. Bans in the local memory are not those of the fleet.
func (w *Widener) Note(v *limiter.Verdict) {
	if w == nil || !v.Refused || v.Outcome == outcome.Local {
		return
	}
	for i := range v.Enforced {
		if !v.Decisions[i].BanBegins || v.Entries[i].Zone.Widen == nil {
			continue
		}
		f := v.Refusal(i)
		select {
		case w.begun <- begun{f.Zone, f.Key, f.BanLasts()}:
		default: // so many bans begin that others of the network will
		}
	}
}

// Close ends what the Widener does. A second call does nothing.
func (w *Widener) Close() {
	if w == nil {
		return
	}
	w.once.Do(func() {}) // it does not start any longer
	w.ended.Do(func() { close(w.quit) })
	w.done.Wait()
}

func (w *Widener) run() {
	ticker := time.NewTicker(w.Every)
	defer ticker.Stop()
	for {
		select { // before bans, which may begin faster than they are noted
		case <-ticker.C:
			w.lookAtAll()
		default:
		}
		select {
		case b := <-w.begun:
			w.note(&b)
		case <-ticker.C:
			w.lookAtAll()
		case <-w.quit:
			return
		}
	}
}

func (w *Widener) note(b *begun) {
	w.call(func(ctx context.Context, s store.Widener) error { return note(ctx, s, b) })
}

func (w *Widener) lookAtAll() {
	w.call(w.setAgain)
	for _, z := range w.Zones {
		w.call(func(ctx context.Context, s store.Widener) error { return w.look(ctx, s, z) })
	}
}

// call calls the store. An error is that of a store that does not answer, which the log says elsewhere.
func (w *Widener) call(do func(ctx context.Context, s store.Widener) error) {
	session, err := w.Store.Begin()
	if err != nil {
		return
	}
	defer session.End()
	s, ok := session.Store.Store.(store.Widener)
	if !ok {
		return // New's caller has checked that
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if err := do(ctx, s); err != nil {
		w.Logger.Debug("bans do not widen now", zap.Error(err))
	}
}

// note tells the store that a key of a network is banned.
func note(ctx context.Context, s store.Widener, b *begun) error {
	network := b.zone.Widen.Network(key.ParseAddress(b.key))
	if !network.IsValid() {
		return nil
	}
	return s.NoteBan(ctx, b.zone.Rules()[0], network, b.key, b.left, b.zone.Widen.From)
}

// Forget tells the store that a key of a zone is not banned any longer, because an operator has ended that.
func Forget(ctx context.Context, s store.Store, z *zone.Zone, k string) error {
	widener, ok := s.(store.Widener)
	if !ok || z.Widen == nil {
		return nil
	}
	return note(ctx, widener, &begun{zone: z, key: k})
}

// unset is the ban of a network that the store has not taken.
type unset struct {
	zone  *zone.Zone
	of    store.Widening
	since time.Time
}

// set bans a network, and reports whether that has an override already: of an operator, or of a call that has failed.
func (u *unset) set(ctx context.Context, s store.Widener) (has bool, err error) {
	left := u.zone.Widen.For - time.Since(u.since)
	if left < store.MinOverride {
		return false, nil
	}
	made, err := s.BanNetwork(ctx, u.zone.Rules()[0], u.of.Network, store.Override{
		Kind: store.KindBanned, For: left.Truncate(time.Microsecond), Since: u.since.Truncate(time.Second), By: zone.WidenBy, Note: zone.WidenNote(&u.of),
	})
	return err == nil && !made, err
}

// setAgain tries again to ban networks.
func (w *Widener) setAgain(ctx context.Context, s store.Widener) error {
	for len(w.unset) > 0 {
		u := w.unset[0]
		has, err := u.set(ctx, s)
		if err != nil {
			return err
		}
		if has {
			w.Logger.Info("a ban does not widen, because its network has an override", zap.String("zone", u.zone.Name), zap.Stringer("network", u.of.Network))
		}
		w.unset = w.unset[1:]
	}
	return nil
}

// known returns the networks that are suspects.
func known(all []store.Suspect) map[netip.Prefix]bool {
	networks := make(map[netip.Prefix]bool, len(all))
	for _, s := range all {
		networks[s.Network] = true
	}
	return networks
}
