package world

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/widen"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Bans widen sooner than in production, where instances ask every five seconds, and watch a network for a minute. They do not ask at
// the instants of what stores do at round times.
const (
	widenEvery   = time.Second + 17*time.Nanosecond
	widenWatched = 4 * time.Second
)

// Widens says when bans widen to networks.
type Widens struct {
	WidenFrom   int  // how many keys must be banned at once; 0: bans do not widen
	Innocent    int  // how many others may pass
	WidenDryRun bool // networks are judged, and not banned
}

// widens has bans of a zone widen to the first network around its keys.
func (z *Zone) widens() *zone.Widen {
	if z.WidenFrom == 0 {
		return nil
	}
	w := &zone.Widen{Widen: store.Widen{From: z.WidenFrom, Innocent: z.Innocent, For: z.BanFor}, DryRun: z.WidenDryRun}
	w.IPv4, w.IPv6 = around[4][0].Bits(), around[6][0].Bits()
	return w
}

// widensValidly reports whether a config could have bans widen so.
func (z *Zone) widensValidly() bool {
	return z.WidenFrom == 0 || z.WidenFrom >= store.MinWiden && z.BanAfter > 0 && z.Overrides && z.Innocent >= 0
}

// widener widens the bans of a generation.
func (g *whole) widener() *widen.Widener {
	w := widen.New(widen.Config{
		Zones: g.zones, Store: g.store, Decided: func(*zone.Zone, store.Widening) {}, Logger: zap.NewNop(), Every: widenEvery, Watched: widenWatched,
	})
	w.Start()
	return w
}

// forget has the networks of a key know that an operator has ended its ban, unless that has failed.
func (w *world) forget(e *Event, err error) error {
	in := w.instance(e.Instance)
	g := in.whole.Load()
	if err != nil || g == nil {
		return err
	}
	return widen.Forget(context.Background(), in.store, g.zones[e.Zone], w.plan.keyName(e.Key))
}

// WidenStep is what an instance has done so that bans widen.
type WidenStep struct {
	What           // which step it is
	Instance, Zone int
	Began, Ended   time.Duration
	Failure        string // its kind; empty: it is done
	store.Widening        // of a judged one
	For            time.Duration
}

// What says which step it is.
type What string

const (
	watched What = "watched" // it has noted which keys of a suspect have passed
	judged  What = "judged"
	widened What = "widened" // it has banned the network, For
	left    What = "left"    // it has not, because that had an override
)

// step notes a step. Those of an instance that is no more may be done.
func (s *seam) step(what What, rule *store.Rule, do func(step *WidenStep) error) error {
	step := WidenStep{What: what, Instance: s.instance.number, Began: s.w.net.now()}
	step.Zone, _ = zoneOf(rule)
	err := do(&step)
	if step.Ended = s.w.net.now(); s.instance.dead() {
		step.Failure = killed
	} else if err != nil {
		step.Failure = store.Failure(err)
	}
	h := s.w.history
	h.note(step.Ended, fmt.Sprintf("instance %d: %s network 0 of zone %d since %v: %v %v %s", step.Instance, step.What, step.Zone, step.Began, step.Widening, step.For, step.Failure))
	h.mu.Lock()
	defer h.mu.Unlock()
	at, _ := slices.BinarySearchFunc(h.Steps, step, func(a, b WidenStep) int {
		return cmp.Or(cmp.Compare(a.Ended, b.Ended), cmp.Compare(a.Instance, b.Instance))
	})
	h.Steps = slices.Insert(h.Steps, at, step)
	return err
}

// NotePassed implements [store.Widener].
func (s *seam) NotePassed(ctx context.Context, rule *store.Rule, network netip.Prefix, keys []string) error {
	return s.step(watched, rule, func(*WidenStep) error { return s.Store.NotePassed(ctx, rule, network, keys) })
}

// Judge implements [store.Widener].
func (s *seam) Judge(ctx context.Context, rule *store.Rule, network netip.Prefix, by store.Widen) (of store.Widening, err error) {
	err = s.step(judged, rule, func(step *WidenStep) error {
		of, err = s.Store.Judge(ctx, rule, network, by)
		step.Widening = of
		return err
	})
	return of, err
}

// BanNetwork implements [store.Widener].
func (s *seam) BanNetwork(ctx context.Context, rule *store.Rule, network netip.Prefix, ban store.Override) (made bool, err error) {
	err = s.step(widened, rule, func(step *WidenStep) error {
		step.For = ban.For
		if made, err = s.Store.BanNetwork(ctx, rule, network, ban); !made && err == nil {
			step.What = left
		}
		return err
	})
	return made, err
}
