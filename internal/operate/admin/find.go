package admin

import (
	"fmt"
	"slices"
	"sync"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// findKey shows a key in all zones. If the keys of a zone have several parts, and the call has just
// one, it shows the recent keys with this part.
func findKey(c *adminCall) (any, error) {
	named, err := c.readKeyQuery()
	if err != nil {
		return nil, err
	}
	if named.isEmpty() {
		return nil, adminError(badRequest, "the key is missing")
	}
	zones := runningZones()
	found := make([][]adminapi.Key, len(zones))
	var group sync.WaitGroup
	for i, z := range zones {
		group.Go(func() { found[i] = z.find(c, &named) })
	}
	group.Wait()
	return slices.Concat(found...), nil
}

// find returns what a call without the name of a zone finds in this one.
func (z *runningZone) find(c *adminCall, named *keyQuery) (found []adminapi.Key) {
	all, err := named.keysInUnnamed(z)
	for _, key := range all {
		state, failed := z.lookUp(c, key)
		if failed != nil {
			err = failed
			break
		}
		found = append(found, *state)
	}
	if err != nil {
		found = append(found, adminapi.Key{Zone: z.Name, Error: err.Error()})
	}
	return found
}

// keysInUnnamed returns the keys in a zone that the call does not name. A zone without a key has one
// state for all requests.
func (k *keyQuery) keysInUnnamed(z *runningZone) (keys []string, err error) {
	template := z.Zone.Template
	var key string
	switch n := template.NumPlaceholders(); {
	case n == 0:
		key, err = template.FromValues(nil)
	case n == 1 && k.text != nil && len(template.Parts) > 1:
		if key, err = template.FromText(*k.text); err != nil {
			key, err = template.FromValues([]string{*k.text})
		}
	default:
		if key, err = k.keyOf(template); err != nil && k.text != nil && n > 1 {
			if keys = z.recentKeysWith(*k.text); keys != nil {
				return keys, nil
			}
			err = fmt.Errorf("%w, since no recent key has this part", err)
		}
	}
	if err != nil {
		return nil, err
	}
	return []string{key}, nil
}

const (
	// maxFound bounds the keys that are looked up because of one of their parts.
	maxFound = 20

	// maxSearched bounds the recent keys that are searched for a part.
	maxSearched = 1000
)

// recentKeysWith returns recent keys that have this text as a part, those that were refused most first.
func (z *runningZone) recentKeysWith(text string) (keys []string) {
	for _, kind := range []topk.Kind{topk.Refused, topk.Requests} {
		top, _ := z.Stats.Keys.Top(maxSearched, kind)
		for _, e := range top {
			if len(keys) < maxFound && e.Length == len(e.Key) && !slices.Contains(keys, e.Key) && z.Zone.Template.HasPart(e.Key, text) {
				keys = append(keys, e.Key)
			}
		}
	}
	return keys
}
