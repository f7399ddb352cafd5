package admin

import (
	"context"
	"sync"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/peek"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/store"
)

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
