package zone

import (
	"fmt"
	"net/netip"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Widen says when the bans of a zone's keys widen to their network.
type Widen struct {
	store.Widen
	IPv4, IPv6 int  // the lengths of the networks' prefixes
	DryRun     bool // nothing is banned, only told
}

// Network returns the network to which the ban of a key may widen. It is not valid for a key that is no address.
func (w *Widen) Network(key netip.Prefix) netip.Prefix {
	bits := w.IPv6
	if key.Addr().Is4() {
		bits = w.IPv4
	}
	if !key.IsValid() || bits >= key.Bits() {
		return netip.Prefix{}
	}
	network, _ := key.Addr().Prefix(bits)
	return network
}

func (w *Widen) describe() string {
	text := fmt.Sprintf(" widen /%d /%d from %d innocent %d", w.IPv4, w.IPv6, w.From, w.Innocent)
	if w.DryRun {
		text += " dry_run"
	}
	return text
}

// WidenNote is the note of a network's ban.
func WidenNote(w *store.Widening) string {
	return fmt.Sprintf("widened: %d of its keys were banned at once, and %d others had passed in %s", w.Banned, w.Passed, duration.Format(store.PassedFor))
}

// WidenBy is who sets the bans of networks.
const WidenBy = "widen"
