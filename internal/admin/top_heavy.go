package admin

import (
	"strconv"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// showNetworks shows the networks of a zone, or of all zones with addresses in their keys, with the most requests.
func showNetworks(c *adminCall) error {
	if c.zone != nil && !c.zone.Template.HasAddress {
		return adminError(badRequest, "the keys of zone %q have no address: it has no networks", c.zone.Name)
	}
	return showHeavy(c, func(z *runningZone) bool { return z.Template.HasAddress }, (*runningZone).topNetworks)
}

// showGroups shows the groups of a zone, or of all zones with the option group, with the most requests.
func showGroups(c *adminCall) error {
	if c.zone != nil && c.zone.GroupTemplate == nil {
		return adminError(badRequest, "zone %q has no groups: write group <placeholder> in it, such as group {header.User-Agent}", c.zone.Name)
	}
	return showHeavy(c, func(z *runningZone) bool { return z.GroupTemplate != nil }, (*runningZone).topGroups)
}

// showHeavy shows what a zone, or each zone that has something like it, lists above a share of its requests.
func showHeavy[T any](c *adminCall, has func(*runningZone) bool, top func(z *runningZone, share float64) T) error {
	if err := c.checkParameters("share"); err != nil {
		return err
	}
	share, err := c.readShare()
	if err != nil {
		return err
	}
	if c.zone != nil {
		return c.writeJSON(top(c.zone, share))
	}
	answers := []T{}
	for _, z := range runningZones() {
		if has(z) {
			answers = append(answers, top(z, share))
		}
	}
	return c.writeJSON(answers)
}

// readShare returns the share of all requests that is asked for.
func (c *adminCall) readShare() (share float64, err error) {
	text := c.query.Get("share")
	if text == "" {
		return 0.01, nil
	}
	if share, err = strconv.ParseFloat(text, 64); err != nil || !(share >= 0.002 && share <= 1) {
		return 0, adminError(badRequest, "share must be from 0.002 to 1, got %q", text)
	}
	return share, nil
}

func (z *runningZone) topNetworks(share float64) adminapi.Networks {
	top, total, since := z.countNetworks().Top(share)
	return heavyNetworks(z.Name, share, top, total, since)
}

func heavyNetworks(zone string, share float64, top []topk.NetworkCount, total uint64, since time.Time) adminapi.Networks {
	answer := adminapi.Networks{
		HeavyList: adminapi.HeavyList{Zone: zone, Since: since, Requests: total, Share: share}, Networks: make([]adminapi.NetworkCount, len(top)),
	}
	for i := range top {
		answer.Networks[i] = adminapi.NetworkCount{Network: top[i].Network.String(), HeavyCount: heavyCount(&top[i].Heavy), Own: top[i].Own}
	}
	return answer
}

func (z *runningZone) topGroups(share float64) adminapi.Groups {
	top, total, since := z.Stats.Groups.Look(z.Group).Top(share)
	answer := adminapi.Groups{
		HeavyList: adminapi.HeavyList{Zone: z.Name, Since: since, Requests: total, Share: share}, By: z.Group, Groups: make([]adminapi.GroupCount, len(top)),
	}
	for i := range top {
		text := adminapi.NewKeyText(top[i].Value, top[i].Length)
		answer.Groups[i] = adminapi.GroupCount{Group: text.Key, GroupBase64: text.KeyBase64, Truncated: text.Truncated, HeavyCount: heavyCount(&top[i].Heavy)}
	}
	return answer
}

func heavyCount(of *topk.Heavy) adminapi.HeavyCount {
	c := adminapi.HeavyCount{
		Requests: of.Requests.AtLeast, Refused: of.Refused.AtLeast, Error: of.Requests.Error, Keys: of.Keys, KeysError: topk.KeysError,
	}
	if of.Before != nil {
		c.Before, c.BeforeError = &of.Before.AtLeast, of.Before.Error
	}
	return c
}
