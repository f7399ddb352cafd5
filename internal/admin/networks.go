package admin

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	keys "github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// target is what an operator changes: a key, or else a network with several keys, or a group.
type target struct {
	key     string
	network netip.Prefix // not valid for a key or a group
	group   store.Group  // the zero Group for a key or a network
}

// isKey reports whether the target is a key.
func (t target) isKey() bool { return !t.network.IsValid() && t.group == store.Group{} }

// text returns the target as people write it.
func (t target) text() string {
	switch {
	case t.network.IsValid():
		return t.network.String()
	case t.group != store.Group{}:
		return groupText(t.group)
	}
	return t.key
}

// nameIn says in an answer which network or group was changed.
func (t target) nameIn(answer *adminapi.Reset) {
	if t.network.IsValid() {
		answer.Network = t.text()
	} else {
		answer.Group = describeGroup(t.group)
	}
}

// readTarget reads the key, the network or the group that a call names.
func (c *adminCall) readTarget() (t target, err error) {
	if err := c.checkParameters(slices.Concat(keyParameters, groupParameters)...); err != nil {
		return t, err
	}
	named, err := c.readKeyQuery()
	if err != nil {
		return t, err
	}
	if c.namesGroup() {
		t.group, err = c.readGroup(&named)
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
	if (t.group != store.Group{}) {
		if grouper, ok := s.(store.Grouper); ok {
			return ofGroup(grouper, t.group)
		}
		return nil
	}
	networker, ok := s.(store.Networker)
	if t.network.IsValid() {
		if !ok {
			return nil
		}
		return ofNetwork(networker, t.network)
	}
	overrider, _ := s.(store.Overrider)
	if ok && overrider != nil && z.TakesNetworks() {
		if key := keys.ParseAddress(t.key); key.IsValid() {
			return &zone.OfAddress{Overrider: overrider, Networks: networker, Key: key.Masked()}
		}
	}
	return overrider
}

// ofNetwork returns what keeps the override of a network.
func ofNetwork(s store.Networker, network netip.Prefix) store.Overrider {
	return ofSeveral{
		set: func(ctx context.Context, rule *store.Rule, to store.Override) error {
			return s.SetNetwork(ctx, rule, network, to)
		},
		clear: func(ctx context.Context, rule *store.Rule) error { return s.ClearNetwork(ctx, rule, network) },
		get: func(rule *store.Rule) store.Override {
			all := s.Networks(rule)
			return overrideOfNetwork(all, all.Get(network))
		},
	}
}

// ofSeveral keeps the override of a network or a group, whatever the key is.
type ofSeveral struct {
	set   func(context.Context, *store.Rule, store.Override) error
	clear func(context.Context, *store.Rule) error
	get   func(*store.Rule) store.Override
}

func (o ofSeveral) Set(ctx context.Context, rule *store.Rule, _ string, to store.Override) error {
	return o.set(ctx, rule, to)
}

func (o ofSeveral) Get(_ context.Context, rule *store.Rule, _ string) (store.Override, error) {
	return o.get(rule), nil
}

func (o ofSeveral) Clear(ctx context.Context, rule *store.Rule, _ string) error {
	return o.clear(ctx, rule)
}

func (o ofSeveral) Unban(ctx context.Context, rule *store.Rule, _ string) error {
	if o.get(rule).Kind != store.KindBanned {
		return nil
	}
	return o.clear(ctx, rule)
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

// listNetworks returns some networks of the zone, and then groups, from the nth on. There are no more if next is "".
func (z *runningZone) listNetworks(from, n int) (listed []adminapi.Listed, next string) {
	all, i := z.networks(), 0
	for _, some := range []iter.Seq[*store.Network]{all.All(), all.AllGroups()} {
		for network := range some {
			if i++; i <= from {
				continue
			}
			if len(listed) == n {
				return listed, networkCursor + strconv.Itoa(from+n)
			}
			listed = append(listed, z.listed(all, network))
		}
	}
	return listed, ""
}

// listed describes a network, or a group, in a list.
func (z *runningZone) listed(all *store.Networks, network *store.Network) adminapi.Listed {
	o := overrideOfNetwork(all, network)
	info := overrideInfo(&o)
	if o.Kind == store.KindLimit {
		info.Limit = describeLimit(z.Rules()[0], o.Limit, z.Rules()[0].Algorithm().Name() == network.Algorithm)
	}
	info.Requests = network.Requests()
	text := network.Prefix.String()
	if network.IsGroup() {
		text, info.Group = groupText(network.Group), describeGroup(network.Group)
		info.Group.Unused = network.Group.By != z.Group
	} else {
		info.Network = text
	}
	return adminapi.Listed{KeyText: adminapi.NewKeyText(text, len(text)), Override: info, DryRun: z.mayTry("", true)}
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
