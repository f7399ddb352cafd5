package topk

import (
	"net/netip"
	"testing"
	"time"
)

// TestWatch: of a network that somebody asks about, the keys are known that pass and are not refused, over ten minutes. When
// keys have no room, it is told.
func TestWatch(t *testing.T) {
	var w Watch
	now, network := time.Now(), netip.MustParsePrefix("0.0.1.0/24")
	nobody := func(netip.Prefix) bool { return false }
	expect := func(what string, keys int, all bool) {
		t.Helper()
		if got, since, known := w.Innocent(network, nobody, now); got != keys || known != all || now.Sub(since) > watchedSpan {
			t.Errorf("%s: %d keys, all: %v, for %v, want %d and %v", what, got, known, now.Sub(since), keys, all)
		}
	}
	w.Add(address4(256), false, now)
	expect("before the first question", 0, true)
	for i := range uint32(8) {
		w.Add(address4(256+i), false, now)
		w.Add(address4(512+i), false, now) // in another network
	}
	expect("eight have passed", 8, true)
	w.Add(address4(256), true, now)
	expect("one was refused", 7, true)
	if got, _, _ := w.Innocent(network, func(key netip.Prefix) bool { return key == address4(257) }, now); got != 6 {
		t.Errorf("%d keys without another one, want 6", got)
	}
	now = now.Add(watchedSpan - time.Second)
	w.Add(address4(258), false, now)
	w.Add(address4(256), false, now)
	expect("just before it is over", 7, true)
	now = now.Add(time.Second)
	expect("only those that came again are left", 2, true)

	network = netip.MustParsePrefix("2001:db8::/48")
	w.Innocent(network, nobody, now)
	for i := range uint64(watchedKeys + 1) {
		w.Add(address6(0x2001_0db8_0000_0000|i), false, now)
	}
	expect("one had no room", watchedKeys, false)
	now = now.Add(watchedSpan)
	w.Add(address6(0x2001_0db8_0000_0000|watchedKeys), false, now)
	expect("the others are over", 1, true)

	network = netip.MustParsePrefix("2001:db8:1::/48")
	w.Innocent(network, nobody, now)
	for i := range uint64(4 * watchedKeys) {
		w.Add(address6(0x2001_0db8_0001_0000|i), true, now)
	}
	w.Add(address6(0x2001_0db8_0001_ffff), false, now)
	expect("keys that are refused need no room", 1, true)
	if keys, all := w.InnocentKeys(network, now); len(keys) != 1 || !all || keys[0] != address6(0x2001_0db8_0001_ffff) {
		t.Errorf("the innocent keys are %v, all: %v", keys, all)
	}
	w.Keep(map[netip.Prefix]bool{network: true})
	expect("after all others were forgotten", 1, true)

	now = now.Add(watchedFor - 1)
	if !w.Sweep(now) || w.Sweep(now.Add(1)) {
		t.Error("networks are not watched for as long as somebody asks, and no longer")
	}
	for i := range uint32(watchedNetworks) {
		p, _ := address4(i << 8).Addr().Prefix(24)
		if _, _, all := w.Innocent(p, nobody, now); !all {
			t.Errorf("network %d has no room", i)
		}
	}
	if _, _, all := w.Innocent(network, nobody, now); all {
		t.Error("a network too many is said to be known")
	}
}
