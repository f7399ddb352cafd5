package memorystore

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// maxNoted is how many networks with banned keys are known, of all zones together. More are not noted until others have ended.
const maxNoted = 16_384

// widenings knows which keys of networks are banned, and which pass, for bans that widen.
type widenings struct {
	mu      sync.Mutex
	noted   map[networkIn]*notedNetwork
	ends    int64 // when the next networks are looked for that can be forgotten, if there is no room
	decided map[networkIn]decided
}

type networkIn struct {
	networksOf
	network netip.Prefix
}

// notedNetwork has the times at which keys no longer count.
type notedNetwork struct {
	banned, passed map[string]int64
	since          int64 // when it has become a suspect; 0: it is none
}

type decided struct {
	store.Widening
	until int64
}

// stillCount forgets the keys that no longer count, and returns how many are left.
func stillCount(keys map[string]int64, now int64) int {
	maps.DeleteFunc(keys, func(_ string, until int64) bool { return until <= now })
	return len(keys)
}

// at locks, and forgets what is over. It returns the time, and what is known of a network, which may be nil.
func (w *widenings) at(s *Store, in networkIn) (now int64, of *notedNetwork) {
	w.mu.Lock()
	now = s.now()
	maps.DeleteFunc(w.decided, func(_ networkIn, d decided) bool { return d.until <= now })
	if of = w.noted[in]; of != nil {
		of.expire(now)
		stillCount(of.banned, now)
		stillCount(of.passed, now)
	}
	return now, of
}

// expire ends a suspicion about which nobody has decided.
func (n *notedNetwork) expire(now int64) {
	if n.since != 0 && n.since+store.SuspectFor.Microseconds() <= now {
		n.since = 0
	}
}

// note returns what is known of a network from now on. It is nil if there is no room. The lock is held.
func (w *widenings) note(in networkIn, now int64) *notedNetwork {
	if of := w.noted[in]; of != nil {
		return of
	}
	if len(w.noted) >= maxNoted {
		if now < w.ends {
			return nil
		}
		w.ends = now + time.Second.Microseconds()
		maps.DeleteFunc(w.noted, func(_ networkIn, n *notedNetwork) bool {
			n.expire(now)
			return n.since == 0 && stillCount(n.banned, now) == 0
		})
		if len(w.noted) >= maxNoted {
			return nil
		}
	}
	if w.noted == nil {
		w.noted, w.decided = make(map[networkIn]*notedNetwork), make(map[networkIn]decided)
	}
	of := &notedNetwork{banned: make(map[string]int64), passed: make(map[string]int64)}
	w.noted[in] = of
	return of
}

// suspects returns how many suspects a zone has. The lock is held.
func (w *widenings) suspects(zone networksOf) (n int) {
	for in, of := range w.noted {
		if in.networksOf == zone && of.since != 0 {
			n++
		}
	}
	return n
}

func inNetwork(rule *store.Rule, network netip.Prefix) networkIn {
	return networkIn{networksOf{rule.Zone(), rule.Salt()}, network}
}

// NoteBan implements [store.Widener].
func (s *Store) NoteBan(_ context.Context, rule *store.Rule, network netip.Prefix, key string, left time.Duration, from int) error {
	w, in := &s.widenings, inNetwork(rule, network)
	now, of := w.at(s, in)
	defer w.mu.Unlock()
	if left <= 0 {
		if of != nil {
			delete(of.banned, key)
		}
		return nil
	}
	if of = w.note(in, now); of == nil {
		return nil
	}
	if _, known := of.banned[key]; known || len(of.banned) < store.MaxWiden {
		of.banned[key] = now + left.Microseconds()
	}
	delete(of.passed, key)
	if _, holds := w.decided[in]; len(of.banned) >= from && of.since == 0 && !holds && w.suspects(in.networksOf) < store.MaxSuspects {
		of.since = now
	}
	return nil
}

// NotePassed implements [store.Widener].
func (s *Store) NotePassed(_ context.Context, rule *store.Rule, network netip.Prefix, keys []string) error {
	now, of := s.widenings.at(s, inNetwork(rule, network))
	defer s.widenings.mu.Unlock()
	if of == nil || of.since == 0 {
		return nil
	}
	for _, key := range keys {
		if _, is := of.banned[key]; !is && len(of.passed) <= store.MaxWiden {
			of.passed[key] = now + store.PassedFor.Microseconds()
		}
	}
	return nil
}

// Widenings implements [store.Widener].
func (s *Store) Widenings(_ context.Context, rule *store.Rule) (all store.Widenings, err error) {
	w, zone := &s.widenings, inNetwork(rule, netip.Prefix{}).networksOf
	now, _ := w.at(s, networkIn{})
	defer w.mu.Unlock()
	for in, of := range w.noted {
		if of.expire(now); in.networksOf == zone && of.since != 0 {
			all.Suspects = append(all.Suspects, store.Suspect{Network: in.network, For: time.Duration(now-of.since) * time.Microsecond})
		}
	}
	slices.SortFunc(all.Suspects, func(a, b store.Suspect) int { return cmp.Compare(b.For, a.For) })
	for in, d := range w.decided {
		if in.networksOf == zone {
			d.Left = time.Duration(d.until-now) * time.Microsecond
			all.Decided = append(all.Decided, d.Widening)
		}
	}
	return all, nil
}

// BanNetwork implements [store.Widener].
func (s *Store) BanNetwork(_ context.Context, rule *store.Rule, network netip.Prefix, ban store.Override) (bool, error) {
	made, err := s.setNetwork(rule, network, ban, true)
	return err == nil && s.Networks(rule).Get(network) == made, err
}

// Judge implements [store.Widener].
func (s *Store) Judge(_ context.Context, rule *store.Rule, network netip.Prefix, by store.Widen) (store.Widening, error) {
	w, in := &s.widenings, inNetwork(rule, network)
	now, of := w.at(s, in)
	defer w.mu.Unlock()
	made := store.Widening{Network: network}
	if of == nil || of.since == 0 {
		return made, nil
	}
	of.since = 0
	made.Banned, made.Passed = len(of.banned), len(of.passed)
	if made.Verdict, made.Left = by.Decide(made.Banned, made.Passed); made.Verdict == store.Undecided {
		return made, nil
	}
	w.decided[in] = decided{made, now + made.Left.Microseconds()}
	if made.Verdict == store.Widened {
		delete(w.noted, in)
	}
	return made, nil
}

var _ store.Widener = (*Store)(nil)
