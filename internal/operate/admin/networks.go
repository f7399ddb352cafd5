package admin

import (
	keys "github.com/seed-161337e5/caddyratelimit/internal/request/key"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// readTarget reads what a call names: a key, or a network with several keys.
func (c *adminCall) readTarget() (of store.Selector, err error) {
	named, err := c.readKeyQuery()
	if err != nil {
		return of, err
	}
	if named.text != nil && c.zone.Template.IsAddress() {
		if network, several, err := c.zone.Template.Network(*named.text); err == nil && several {
			return store.Selector{Network: network}, nil
		}
	}
	if of.Key, err = named.keyIn(c.zone); err == nil && c.zone.TakesNetworks() {
		of.Network = keys.ParseAddress(of.Key).Masked()
	}
	return of, err
}

// networks returns the networks that have overrides in the zone, or nil.
func (z *runningZone) networks() *store.Networks {
	if !z.TakesNetworks() {
		return nil
	}
	return z.store.Networks(z.Rules()[0])
}
