package widen

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// look watches the suspects of a zone, notes which of their keys pass, and decides about those that were watched for long enough.
func (w *Widener) look(ctx context.Context, s store.Widener, z *zone.Zone) error {
	rule := z.Rules()[0]
	all, err := s.Widenings(ctx, rule)
	if err != nil {
		return err
	}
	now := time.Now()
	z.Stats.Suspects.Keep(known(all.Suspects))
	z.Stats.Widened.Set(widened(all.Decided, now))
	if len(all.Suspects) == 0 {
		return nil
	}
	recent := recentKeys(z)
	for _, suspect := range all.Suspects {
		passed := passing(z, suspect.Network, recent, now)
		if err := s.NotePassed(ctx, rule, suspect.Network, passed); err != nil {
			return err
		}
		if suspect.For < w.Watched {
			continue
		}
		if err := w.judge(ctx, s, z, suspect.Network); err != nil {
			return err
		}
	}
	return nil
}

// judge has the store decide about a suspect, and bans it. What an operator has set for the network, or a ban of a larger one, stays.
func (w *Widener) judge(ctx context.Context, s store.Widener, z *zone.Zone, network netip.Prefix) error {
	by, networks := z.Widen.Widen, s.Networks(z.Rules()[0])
	if of := networks.Find(network); of != nil && of.Override.Kind == store.KindBanned || networks.Get(network) != nil {
		by.From = store.MaxWiden + 1 // which it cannot have
	}
	of, err := s.Judge(ctx, z.Rules()[0], network, by)
	if err != nil || of.Verdict == store.Undecided {
		return err
	}
	if of.Verdict == store.Widened {
		z.Stats.Widened.Count()
		if !z.Widen.DryRun {
			w.unset = append(w.unset, &unset{zone: z, of: of, since: time.Now()})
			err = w.setAgain(ctx, s)
		}
	}
	w.Decided(z, of)
	return err
}

// passing returns keys of a network that have lately passed here and were not refused, the first ones in order: more than may pass,
// because other instances may have banned some of them. If more may have passed than are known, there are unknown ones, too.
func passing(z *zone.Zone, network netip.Prefix, recent map[netip.Prefix]bool, now time.Time) (passed []string) {
	keys, all := z.Stats.Suspects.Look(z.Template.Address).InnocentKeys(network, now)
	for k := range recent {
		if network.Contains(k.Addr()) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, netip.Prefix.Compare)
	keys = slices.Compact(keys)
	for _, k := range keys[:min(len(keys), z.Widen.Innocent+maxElsewhere)] {
		text := k.String()
		if k.IsSingleIP() {
			text = k.Addr().String()
		}
		passed = append(passed, text)
	}
	for i := 0; !all && i <= z.Widen.Innocent; i++ {
		passed = append(passed, fmt.Sprint("unknown ", i))
	}
	return passed
}

// maxElsewhere is how many of the keys that pass here others may have banned, one more at most: as many as a /24 has.
const maxElsewhere = 256

// recentKeys are the keys that have come most often in the last minutes, and were not refused. So the busy keys of a network are
// known before it was watched for long.
func recentKeys(z *zone.Zone) map[netip.Prefix]bool {
	keys := make(map[netip.Prefix]bool)
	if z.Stats.Keys == nil {
		return keys
	}
	top, _, _ := z.Stats.Keys.Top(maxRecent, topk.Requests)
	for i := range top {
		if n := &top[i].Counts; n[topk.Requests].AtLeast > 0 && n[topk.Refused].AtLeast+n[topk.Refused].Error == 0 {
			if k := key.ParseAddress(top[i].Key); k.IsValid() {
				keys[k] = true
			}
		}
	}
	return keys
}

// maxRecent is above the number of keys that are counted one by one.
const maxRecent = 1 << 16

func widened(decided []store.Widening, now time.Time) []stats.WidenedBan {
	var all []stats.WidenedBan
	for _, d := range decided {
		all = append(all, stats.WidenedBan{Network: d.Network, Banned: d.Banned, Passed: d.Passed, Spared: d.Verdict == store.Spared, Until: now.Add(d.Left)})
	}
	return all
}
