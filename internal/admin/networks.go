package admin

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	keys "github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// target is what an operator changes: a key, or else a network with several keys.
type target struct {
	key     string
	network netip.Prefix // not valid for a key
}

// isKey reports whether the target is a key.
func (t target) isKey() bool { return !t.network.IsValid() }

// text returns the target as people write it.
func (t target) text() string {
	if t.isKey() {
		return t.key
	}
	return t.network.String()
}

// readTarget reads the key or the network that a call names.
func (c *adminCall) readTarget() (t target, err error) {
	if err := c.checkParameters(keyParameters...); err != nil {
		return t, err
	}
	named, err := c.readKeyQuery()
	if err != nil {
		return t, err
	}
	if named.text != nil && c.zone.Template.IsAddress() {
		if network, several, err := c.zone.Template.Network(*named.text); err == nil && several {
			return target{network: network}, nil
		}
	}
	t.key, err = named.keyIn(c.zone)
	return t, err
}

// overrider returns what keeps the override of the target in a store, or nil if nothing does.
func (z *runningZone) overrider(s store.Store, t target) store.Overrider {
	networker, ok := s.(store.Networker)
	if !t.isKey() {
		if !ok {
			return nil
		}
		return ofNetwork{networker, t.network}
	}
	overrider, _ := s.(store.Overrider)
	if ok && overrider != nil && z.TakesNetworks() {
		if key := keys.ParseAddress(t.key); key.IsValid() {
			return &zone.OfAddress{Overrider: overrider, Networks: networker, Key: key.Masked()}
		}
	}
	return overrider
}

// ofNetwork keeps the override of a network, whatever the key is.
type ofNetwork struct {
	store.Networker
	network netip.Prefix
}

func (o ofNetwork) Set(ctx context.Context, rule *store.Rule, _ string, to store.Override) error {
	return o.SetNetwork(ctx, rule, o.network, to)
}

func (o ofNetwork) Get(_ context.Context, rule *store.Rule, _ string) (store.Override, error) {
	all := o.Networks(rule)
	return overrideOfNetwork(all, all.Get(o.network)), nil
}

func (o ofNetwork) Clear(ctx context.Context, rule *store.Rule, _ string) error {
	return o.ClearNetwork(ctx, rule, o.network)
}

func (o ofNetwork) Unban(ctx context.Context, rule *store.Rule, key string) error {
	if was, err := o.Get(ctx, rule, key); err != nil || was.Kind != store.KindBanned {
		return err
	}
	return o.Clear(ctx, rule, key)
}

// overrideOfNetwork returns the override of a network with the time that is left, or none for nil.
func overrideOfNetwork(all *store.Networks, n *store.Network) (o store.Override) {
	if n != nil {
		o = n.Override
		o.For = all.Left(n)
	}
	return o
}

// networks returns the networks that have overrides in the zone, or nil.
func (z *runningZone) networks() *store.Networks {
	if !z.TakesNetworks() {
		return nil
	}
	return z.store.Networks(z.Rules()[0])
}

// listNetworks returns some networks of the zone, from the nth on. There are no more if next is "".
func (z *runningZone) listNetworks(from, n int) (listed []adminapi.Listed, next string) {
	all, i := z.networks(), 0
	for network := range all.All() {
		if i++; i <= from {
			continue
		}
		if len(listed) == n {
			return listed, networkCursor + strconv.Itoa(from+n)
		}
		listed = append(listed, z.listed(all, network))
	}
	return listed, ""
}

// listed describes a network in a list.
func (z *runningZone) listed(all *store.Networks, network *store.Network) adminapi.Listed {
	o := overrideOfNetwork(all, network)
	info := overrideInfo(&o)
	if o.Kind == store.KindLimit {
		info.Limit = describeLimit(z.Rules()[0], o.Limit, z.Rules()[0].Algorithm().Name() == network.Algorithm)
	}
	info.Network, info.Requests = network.Prefix.String(), network.Requests()
	return adminapi.Listed{KeyText: adminapi.KeyText{Key: info.Network}, Override: info, DryRun: z.mayTry("", true)}
}

// networkCursor begins cursors of a list that comes before that of the store.
const (
	networkCursor = "network-"
	keyCursor     = "key-"
)

// withNetworks puts the networks before a list of the store.
func (z *runningZone) withNetworks(cursor string, n int, list func(cursor string) ([]adminapi.Listed, string, error)) ([]adminapi.Listed, string, error) {
	if at, ok := strings.CutPrefix(cursor, keyCursor); ok {
		listed, next, err := list(at)
		if next != "" {
			next = keyCursor + next
		}
		return listed, next, err
	}
	at, isNetwork := strings.CutPrefix(cursor, networkCursor)
	if cursor != "" && !isNetwork || !z.networks().Any() {
		return list(cursor)
	}
	from, err := strconv.Atoi(at)
	if isNetwork && (err != nil || from < 0) {
		return nil, "", fmt.Errorf("%w: %q", store.ErrCursor, cursor)
	}
	listed, next := z.listNetworks(from, n)
	if next == "" {
		next = keyCursor
	}
	return listed, next, nil
}
