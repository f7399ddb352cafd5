package admin

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/explain"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/peek"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/store"
)

func showZones(c *adminCall) (any, error) {
	counts := running.KeyCounts(running.Stores()...)
	return each(c.zones(), func(z *running.Zone) adminapi.Zone {
		answer := z.Show(counts)
		add(&answer, c.view)
		return answer
	}), nil
}

// add adds the counts of others to those of a zone, even of those that define the zone in another way.
func add(z *adminapi.Zone, view *fleet.View) {
	for _, told := range view.Of(z.Name) {
		z.Add(&told.ZoneCounts)
	}
}

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

func showStores(c *adminCall) (any, error) {
	stores := running.Stores()
	answers := make([]adminapi.Store, len(stores))
	var group sync.WaitGroup
	for i, s := range stores {
		group.Go(func() {
			answers[i] = s.Show(running.KeyCounts(s))
			probe(c, s, &answers[i])
		})
	}
	group.Wait()
	return answers, nil
}

// probe makes a test call that changes no limit.
func probe(c *adminCall, s *running.Store, answer *adminapi.Store) {
	err := peek.WithStore(c.request.Context(), s.Ref, func(ctx context.Context, probed store.Store) error {
		if prober, ok := probed.(store.Shared); ok { // requests of some keys may be decided although others are not
			_, err := prober.Probe(ctx)
			return err
		}
		return s.TryOut(ctx, probed)
	})
	answers := err == nil
	if answer.Answers = &answers; !answers {
		answer.Error = err.Error()
	}
}

// explainRequest says what would happen to a request in the running config. It is a POST because a request does not fit into
// a query, and because it runs matchers and handlers of the config.
func explainRequest(c *adminCall) (any, error) {
	var described adminapi.Request
	if err := c.readBody(&described, false, "url, and maybe method, header, body, from, server, assume"); err != nil {
		return nil, err
	}
	module, err := caddy.ActiveContext().AppIfConfigured("http")
	if err != nil {
		return nil, adminError(http.StatusNotFound, "the running config has no HTTP servers")
	}
	answer, err := explain.Explain(c.request.Context(), module.(*caddyhttp.App), running.Handler, &described)
	if err != nil {
		return nil, adminError(badRequest, "%w", err)
	}
	return answer, nil
}
