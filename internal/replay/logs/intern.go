package logs

import (
	"bytes"
	"hash/maphash"
	"net/netip"
)

// interner makes strings of bytes. Texts that come often become the same string, so they cost no
// memory each time.
type interner struct {
	seed      maphash.Seed
	slots     [4096]string
	addresses [4096]struct{ written, address string }
}

// longest is the length up to which texts are remembered.
const longest = 256

func newInterner() *interner {
	return &interner{seed: maphash.MakeSeed()}
}

// text returns the bytes as a string.
func (n *interner) text(b []byte) string {
	if len(b) == 0 || len(b) > longest {
		return string(b)
	}
	slot := &n.slots[maphash.Bytes(n.seed, b)%uint64(len(n.slots))]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}

// address returns an address without its port, "" if it is none.
func (n *interner) address(v []byte) string {
	const most = 64
	if len(v) > most {
		return ""
	}
	slot := &n.addresses[maphash.Bytes(n.seed, v)%uint64(len(n.addresses))]
	if slot.written != string(v) {
		slot.written, slot.address = string(v), parseAddress(v)
	}
	return slot.address
}

func parseAddress(v []byte) string {
	switch colons := bytes.Count(v, []byte{':'}); {
	case len(v) > 0 && v[0] == '[': // [2001:db8::1]:443
		v, _, _ = bytes.Cut(v[1:], []byte{']'})
	case colons == 1:
		v, _, _ = bytes.Cut(v, []byte{':'})
	}
	text := string(v)
	if _, err := netip.ParseAddr(text); err != nil {
		return ""
	}
	return text
}
