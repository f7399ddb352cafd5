package store

import (
	"context"
	"errors"
	"net/netip"
)

// Selector says whose an override is: that of a key, or of a network.
type Selector struct {
	// Key is the key. Without one, the Network has the override.
	Key string

	// Network is also set for a key that is an address, or a network: the one that the key is. Then the networks around it
	// do not decide about the key while it has an override.
	Network netip.Prefix
}

// IsNetwork reports whether the override is that of a network.
func (s Selector) IsNetwork() bool { return s.Key == "" && s.Network.IsValid() }

// String returns the key or the network as people write it.
func (s Selector) String() string {
	if s.IsNetwork() {
		return s.Network.String()
	}
	return s.Key
}

// WriteOverride is what [Overrider].SetRule does in a store: key writes the override of the Key, and network that of the
// Network, where nil removes it. The networks around a key that is an address are told first that they do not decide about
// it, by an exception of just this address, and told last that they may again. So they never do while the key has an
// override.
func (r *Rule) WriteOverride(of Selector, to Override, key, network func(*PreparedOverride) error) error {
	if of.Network != of.Network.Masked() {
		return errors.New("a network must be masked, such as 203.0.113.0/24")
	}
	var prepared *PreparedOverride
	if to.Kind != KindNone {
		var err error
		if prepared, err = r.PrepareOverride(to); err != nil {
			return err
		}
	}
	if of.IsNetwork() {
		return network(prepared)
	}
	address := of.Network.IsValid()
	if address && prepared != nil {
		if err := network(&PreparedOverride{Override: Override{For: prepared.For}}); err != nil {
			return err
		}
	}
	if err := key(prepared); err != nil || !address || prepared != nil {
		return err
	}
	return network(nil) // this process may not know that there is an exception
}

// Unban is what [Overrider].Unban does in a store, where key ends the ban of the Key. If the Key has no override then, the
// exception goes: also if the Key had none before, because an earlier call may have failed to remove it.
func (s Selector) Unban(ctx context.Context, in Overrider, rule *Rule, key func() error) error {
	ends := KindBanned
	if !s.IsNetwork() {
		if err := key(); err != nil || !s.Network.IsValid() {
			return err
		}
		ends = KindNone
	}
	if is, err := in.GetRule(ctx, rule, s); err != nil || is.Kind != ends {
		return err
	}
	return in.SetRule(ctx, rule, Selector{Network: s.Network}, Override{})
}
