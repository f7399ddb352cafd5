package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
)

// Grouper is a [Networker] that also keeps overrides of groups. That of a group holds for all keys of a zone, in requests
// of the group, for the whole fleet. Each of these keys counts for itself. The override of a key itself, and that of a
// network around it, go before that of a group. [Networker].Networks has the groups, too.
type Grouper interface {
	Networker

	// SetGroup sets the override of a group, in place of any that it has. It asks the store's backend at once, and fails
	// as Take does.
	SetGroup(ctx context.Context, rule *Rule, group Group, override Override) error

	// ClearGroup removes the override of a group, if it has one. It fails as SetGroup does.
	ClearGroup(ctx context.Context, rule *Rule, group Group) error
}

// Group is the requests for which a placeholder has a value.
type Group struct {
	By    string // the placeholder, as the zone names it
	Value string // from 1 to MaxGroup bytes, which clients may choose
}

// MaxGroup is the longest value of a group that has an override, and the longest placeholder, in bytes.
const MaxGroup = 1024

// check returns an error if the group cannot have an override.
func (g Group) check() error {
	switch {
	case g.By == "" || len(g.By) > MaxGroup:
		return fmt.Errorf("placeholder of a group must have from 1 to %d bytes, got %d", MaxGroup, len(g.By))
	case g.Value == "":
		return errors.New("value of a group must not be empty: requests without a value are in no group")
	case len(g.Value) > MaxGroup:
		return fmt.Errorf("value of a group must have at most %d bytes, got %d", MaxGroup, len(g.Value))
	}
	return nil
}

func (g Group) compare(other Group) int {
	return cmp.Or(strings.Compare(g.By, other.By), strings.Compare(g.Value, other.Value))
}

// groups are the overrides of groups in a zone.
type groups struct {
	all   atomic.Pointer[groupTable] // nil: none
	first int64                      // no group ends before; 0: none does. It is guarded as Networks.first is
}

// AnyGroup reports whether a group may have an effect. It costs next to nothing.
func (n *Networks) AnyGroup() bool { return n != nil && n.groups.all.Load() != nil }

// FindGroup returns the override of a request's group, or nil. The key is an address, a network, or not valid. If it has
// an override of its own, or that of a network, a group does not decide about it.
func (n *Networks) FindGroup(key netip.Prefix, group Group) *Network {
	if len(group.Value) > MaxGroup || n.smallest(key) != nil {
		return nil
	}
	return n.GetGroup(group)
}

// GetGroup returns the override of a group, or nil.
func (n *Networks) GetGroup(group Group) *Network {
	if n == nil {
		return nil
	}
	found := n.groups.all.Load().get(group)
	if found == nil || found.until != 0 && found.ended(n.now()) {
		return nil
	}
	return found
}

// AllGroups returns the groups that have not ended, sorted by their placeholders and values.
func (n *Networks) AllGroups() iter.Seq[*Network] {
	return func(yield func(*Network) bool) {
		if !n.AnyGroup() {
			return
		}
		now := n.now()
		all := slices.SortedFunc(n.groups.all.Load().all(), func(a, b *Network) int { return a.Group.compare(b.Group) })
		for _, found := range all {
			if !found.ended(now) && !yield(found) {
				return
			}
		}
	}
}

// changeGroups makes the changes of groups, and returns the others. The lock is held.
func (n *Networks) changeGroups(fresh bool, changes []NetworkChange) (others []NetworkChange) {
	isGroup := func(c NetworkChange) bool { return c.Group != Group{} }
	known, now := n.groups.all.Load(), n.now()
	ended := n.groups.first != 0 && n.groups.first <= now
	if !slices.ContainsFunc(changes, isGroup) && (known == nil || !fresh && !ended) {
		return changes
	}
	table := known
	if fresh || known == nil {
		table = newGroupTable()
		n.groups.first = 0
	}
	edit := table.edit()
	if ended && table == known {
		n.groups.first = 0
		for found := range known.all() {
			if found.ended(now) {
				edit.set(found.Group, nil)
			} else {
				n.groups.endsAt(found)
			}
		}
	}
	for _, c := range changes {
		if !isGroup(c) {
			others = append(others, c)
			continue
		}
		if c.Network != nil {
			if was := known.get(c.Group); was != nil && was != c.Network {
				c.Network.requests.Add(was.requests.Load())
			}
			n.groups.endsAt(c.Network)
		}
		edit.set(c.Group, c.Network)
	}
	edit.publish()
	if table.number == 0 {
		table = nil
	}
	n.groups.all.Store(table)
	return others
}

// endsAt notes that a group is there, and when it ends. The lock is held.
func (g *groups) endsAt(found *Network) {
	if found.until != 0 && (g.first == 0 || found.until < g.first) {
		g.first = found.until
	}
}

// PrepareGroup checks the override of a group, and prepares it for a rule.
func (r *Rule) PrepareGroup(group Group, override Override) (kind byte, tail string, err error) {
	if err := group.check(); err != nil {
		return 0, "", err
	}
	return r.prepareOverruling(override)
}

// ParseGroup is [ParseNetwork] for a group, which is never an exception.
func ParseGroup(group Group, value string, now, here int64) (*Network, error) {
	made, err := parseOverruling(&Network{Group: group}, value, now, here)
	if made != nil && made.Override.Kind == KindNone {
		return nil, errOverride
	}
	return made, err
}
