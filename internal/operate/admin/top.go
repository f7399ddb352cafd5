package admin

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// showTop shows the most frequent keys of zones.
func showTop(c *adminCall) (any, error) {
	by, known := map[string]topk.Kind{"": topk.Requests, "requests": topk.Requests, "refused": topk.Refused}[c.query.Get("by")]
	if !known {
		return nil, adminError(badRequest, "by must be requests or refused, got %q", c.query.Get("by"))
	}
	n, err := c.intParameter("n", 20, 1, 1000)
	if err != nil {
		return nil, err
	}
	return each(c.zones(), func(z *running.Zone) adminapi.Top { return z.Top(c.view, int(n), by) }), nil
}

// showNetworks shows the networks with the most requests, of zones with addresses in their keys.
func showNetworks(c *adminCall) (any, error) {
	zones := slices.DeleteFunc(c.zones(), func(z *running.Zone) bool { return !z.Template.HasAddress })
	if c.zone != nil && len(zones) == 0 {
		return nil, adminError(badRequest, "the keys of zone %q have no address: it has no networks", c.zone.Name)
	}
	n, err := c.intParameter("n", 20, 1, 1000)
	if err != nil {
		return nil, err
	}
	return each(zones, func(z *running.Zone) adminapi.Top { return z.TopNetworks(int(n)) }), nil
}
