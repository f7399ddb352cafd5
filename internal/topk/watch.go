package topk

import (
	"iter"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// watchedNetworks is how many networks of a zone are watched at once, and watchedKeys how many keys of each are known.
	watchedNetworks = 64
	watchedKeys     = 1024

	// watchedSpan is for how long a request counts, and watchedFor how long a network is watched after somebody has asked.
	watchedSpan = 10 * time.Minute
	watchedFor  = 15 * time.Minute
)

// Watch knows which keys of some networks have lately come, and which of them were refused. A network is watched from the
// first question about it on. Times are passed in, and must not go back. It may be used from several goroutines at once.
type Watch struct {
	mu       sync.Mutex
	networks map[netip.Prefix]*watched
	sizes    [2]map[int]bool // the lengths of the prefixes that are watched, of IPv4 and IPv6
}

type watched struct {
	since, asked time.Time
	keys         map[netip.Prefix]lately
	missed       time.Time // when a key had no room
}

// lately is when a key has passed and was refused; zero: it was not.
type lately struct{ passed, refused time.Time }

func (l lately) over(now time.Time) bool {
	return now.Sub(l.passed) >= watchedSpan && now.Sub(l.refused) >= watchedSpan
}

func family(of netip.Prefix) int {
	if of.Addr().Is6() {
		return 1
	}
	return 0
}

// Add notes a request of a key that is an address or a network.
func (w *Watch) Add(key netip.Prefix, refused bool, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for bits := range w.sizes[family(key)] {
		if bits > key.Bits() {
			continue
		}
		network, _ := key.Addr().Prefix(bits)
		if of := w.networks[network]; of != nil {
			of.add(key, refused, now)
		}
	}
}

func (w *watched) add(key netip.Prefix, refused bool, now time.Time) {
	l, known := w.keys[key]
	if !known && len(w.keys) >= watchedKeys {
		if refused {
			return // it is not innocent, and needs no room
		}
		if now.Sub(w.missed) >= time.Second { // else the last look for room was just before
			maps.DeleteFunc(w.keys, func(_ netip.Prefix, l lately) bool { return l.over(now) || now.Sub(l.refused) < watchedSpan })
		}
		if len(w.keys) >= watchedKeys {
			w.missed = now
			return
		}
	}
	if refused {
		l.refused = now
	} else {
		l.passed = now
	}
	w.keys[key] = l
}

// Innocent returns how many keys of a network have passed in the last ten minutes and were not refused in this time, without
// those for which except reports true, and since when they are counted. It reports false if there may be more. From the first
// call on they are counted: then since is now. If a network has many keys, one that was refused may be counted as well.
func (w *Watch) Innocent(network netip.Prefix, except func(key netip.Prefix) bool, now time.Time) (keys int, since time.Time, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.watch(network, now)
	if of == nil {
		return 0, now, false
	}
	for key := range of.innocent(now) {
		if !except(key) {
			keys++
		}
	}
	since = of.since
	if oldest := now.Add(-watchedSpan); since.Before(oldest) {
		since = oldest
	}
	return keys, since, now.Sub(of.missed) >= watchedSpan
}

// InnocentKeys is like [Watch.Innocent], and returns the keys, without an order.
func (w *Watch) InnocentKeys(network netip.Prefix, now time.Time) (keys []netip.Prefix, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.watch(network, now)
	if of == nil {
		return nil, false
	}
	return slices.Collect(of.innocent(now)), now.Sub(of.missed) >= watchedSpan
}

// Keep forgets all networks but these.
func (w *Watch) Keep(networks map[netip.Prefix]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.networks, func(network netip.Prefix, _ *watched) bool { return !networks[network] })
	w.measure()
}

// watch returns what is known of a network, from now on if it is not watched yet. It is nil if there is no room. The lock is held.
func (w *Watch) watch(network netip.Prefix, now time.Time) *watched {
	of := w.networks[network]
	if of == nil {
		if len(w.networks) >= watchedNetworks {
			return nil
		}
		of = &watched{since: now, keys: make(map[netip.Prefix]lately)}
		if w.networks == nil {
			w.networks = make(map[netip.Prefix]*watched)
		}
		w.networks[network] = of
		w.measure()
	}
	of.asked = now
	return of
}

// innocent are the keys that have passed lately, and were not refused.
func (w *watched) innocent(now time.Time) iter.Seq[netip.Prefix] {
	return func(yield func(netip.Prefix) bool) {
		for key, l := range w.keys {
			if now.Sub(l.passed) < watchedSpan && now.Sub(l.refused) >= watchedSpan && !yield(key) {
				return
			}
		}
	}
}

// measure notes the sizes of networks. The lock is held.
func (w *Watch) measure() {
	w.sizes = [2]map[int]bool{make(map[int]bool), make(map[int]bool)}
	for network := range w.networks {
		w.sizes[family(network)][network.Bits()] = true
	}
}

// Sweep forgets the networks about which nobody has asked for long, and reports whether any are left.
func (w *Watch) Sweep(now time.Time) (left bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.networks, func(_ netip.Prefix, of *watched) bool { return now.Sub(of.asked) >= watchedFor })
	w.measure()
	return len(w.networks) > 0
}
