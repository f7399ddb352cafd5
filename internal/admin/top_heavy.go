package admin

import (
	"strconv"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// showNetworks shows the networks of a zone, or of all zones with addresses in their keys, with the most requests.
func showNetworks(c *adminCall) error {
	if c.zone != nil && !networkSets.has(c.zone) {
		return adminError(badRequest, "the keys of zone %q have no address: it has no networks", c.zone.Name)
	}
	return showHeavy(c, networkSets.has, (*runningZone).topNetworks)
}

// showGroups shows the groups of a zone, or of all zones with the option group, with the most requests.
func showGroups(c *adminCall) error {
	if c.zone != nil && !groupSets.has(c.zone) {
		return adminError(badRequest, "zone %q has no groups: write group <placeholder> in it, such as group {header.User-Agent}", c.zone.Name)
	}
	return showHeavy(c, groupSets.has, (*runningZone).topGroups)
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
	return heavyNetworks(z.Name, share, fleet.Merged[topk.NetworkCount]{Top: top, Requests: total, Since: since})
}

func heavyNetworks(zone string, share float64, of fleet.Merged[topk.NetworkCount]) adminapi.Networks {
	answer := adminapi.Networks{HeavyList: heavyList(zone, share, &of), Networks: make([]adminapi.NetworkCount, len(of.Top))}
	for i := range of.Top {
		c := &of.Top[i]
		answer.Networks[i] = adminapi.NetworkCount{Network: c.Network.String(), HeavyCount: heavyCount(&c.Heavy), Own: c.Own}
	}
	return answer
}

func (z *runningZone) topGroups(share float64) adminapi.Groups {
	top, total, since := z.countGroups().Top(share)
	return heavyGroups(z.Name, z.Group, share, fleet.Merged[topk.GroupCount]{Top: top, Requests: total, Since: since})
}

func heavyGroups(zone, by string, share float64, of fleet.Merged[topk.GroupCount]) adminapi.Groups {
	answer := adminapi.Groups{HeavyList: heavyList(zone, share, &of), By: by, Groups: make([]adminapi.GroupCount, len(of.Top))}
	for i := range of.Top {
		c := &of.Top[i]
		text := adminapi.NewKeyText(c.Value, c.Length)
		answer.Groups[i] = adminapi.GroupCount{Group: text.Key, GroupBase64: text.KeyBase64, Truncated: text.Truncated, HeavyCount: heavyCount(&c.Heavy)}
	}
	return answer
}

func heavyList[C any](zone string, share float64, of *fleet.Merged[C]) adminapi.HeavyList {
	list := adminapi.HeavyList{Zone: zone, Since: of.Since, Requests: of.Requests, Share: share}
	if float64(of.Unlisted) >= max(1, share*float64(of.Requests)) {
		list.Unlisted = of.Unlisted
	}
	return list
}

func heavyCount(of *topk.Heavy) adminapi.HeavyCount {
	c := adminapi.HeavyCount{
		Requests: of.Requests.AtLeast, Refused: of.Refused.AtLeast, Error: of.Requests.Error, Keys: of.Keys, KeysError: topk.KeysError, KeysMost: of.KeysMost,
	}
	if of.Before != nil {
		c.Before, c.BeforeError = &of.Before.AtLeast, of.Before.Error
	}
	return c
}
