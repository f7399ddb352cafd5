package admin

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// groupParameters are the parameters that name a group.
var groupParameters = []string{"group", "group_base64"}

func (c *adminCall) namesGroup() bool { return c.query.Has("group") || c.query.Has("group_base64") }

// readGroup reads the group that a call names in place of a key.
func (c *adminCall) readGroup(key *keyQuery) (of store.Group, err error) {
	z := c.zone
	switch {
	case !key.isEmpty() || len(c.query["group"])+len(c.query["group_base64"]) > 1:
		return of, adminError(badRequest, "name a key or one group: by key, key_base64, part, group or group_base64")
	case z.GroupTemplate == nil:
		return of, adminError(http.StatusConflict, "zone %q has no groups: add the option group, such as group {header.User-Agent}", z.Name)
	case !z.Template.IsAddress():
		return of, adminError(http.StatusConflict, "groups of zone %q cannot have overrides, because its key is no address: use a zone with key {client_ip}", z.Name)
	}
	if of.Value, err = c.readGroupValue(); err == nil && of.Value == "" {
		err = adminError(badRequest, "group must not be empty: requests without a value are in no group")
	} else if len(of.Value) > store.MaxGroup {
		err = adminError(badRequest, "group must have at most %d bytes, got %d", store.MaxGroup, len(of.Value))
	}
	of.By = z.Group
	return of, err
}

// readGroupValue reads the value of the group, in the form that those of requests have.
func (c *adminCall) readGroupValue() (string, error) {
	if !c.query.Has("group_base64") {
		value, err := c.zone.GroupTemplate.FromText(c.query.Get("group"))
		if err != nil {
			err = adminError(badRequest, "group: %w", err)
		}
		return value, err
	}
	b, err := base64.StdEncoding.DecodeString(c.query.Get("group_base64"))
	if err != nil {
		return "", adminError(badRequest, "group_base64: %w; percent-encode + / and =", err)
	}
	return string(b), nil
}

// describeGroup returns a group in JSON.
func describeGroup(g store.Group) *adminapi.Group {
	return adminapi.NewGroup(groupBy(g), g.Value)
}

// groupBy returns the placeholder of a group as it is written in a Caddyfile.
func groupBy(g store.Group) string { return "{" + placeholder.Short(strings.Trim(g.By, "{}")) + "}" }

// groupText returns a group as it is listed among keys, and in logs.
func groupText(g store.Group) string { return groupBy(g) + " " + g.Value }

// ofGroup returns what keeps the override of a group.
func ofGroup(s store.Grouper, group store.Group) store.Overrider {
	return ofSeveral{
		set: func(ctx context.Context, rule *store.Rule, to store.Override) error {
			return s.SetGroup(ctx, rule, group, to)
		},
		clear: func(ctx context.Context, rule *store.Rule) error { return s.ClearGroup(ctx, rule, group) },
		get: func(rule *store.Rule) store.Override {
			all := s.Networks(rule)
			return overrideOfNetwork(all, all.GetGroup(group))
		},
	}
}
