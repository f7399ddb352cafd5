//go:build deep

package redisstore_test

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestClusterConforms runs the contract on a Cluster.
func TestClusterConforms(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	servers := c.Nodes()
	options := redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs()[:2], DenyCache: -1}
	keys := clockKeys(servers)
	storetest.Run(t, func(t testing.TB) (store.Store, func(int64)) {
		for _, server := range servers {
			if err := server.Admin().FlushAll(context.Background()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, redisstore.WithoutRenewal(options))
		s.SetClocks(slices.Collect(maps.Values(keys)))
		var today atomic.Int64
		s.SetToday(today.Load)
		setNow := func(now int64) {
			today.Store(now)
			for server, key := range keys {
				if err := server.Admin().Set(context.Background(), key, now, 0).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		setNow(storetest.Start)
		return prompt{s}, setNow
	})
}

// prompt is a store in which every request finds everything that the requests before it have
// given back. Over several slots, that takes a moment.
type prompt struct{ *redisstore.Store }

func (p prompt) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	err := p.Store.Take(ctx, checks, decisions)
	p.Flush()
	return err
}

// clockKeys returns a key of each server that has the server's time.
func clockKeys(servers []*redistest.Server) map[*redistest.Server]string {
	keys := make(map[*redistest.Server]string)
	for _, server := range servers {
		key := ""
		for i := 0; key == "" || server.Admin().Set(context.Background(), key, 0, 0).Err() != nil; i++ {
			key = "test:now" + strconv.Itoa(i) // until this server has the key
		}
		keys[server] = key
	}
	return keys
}
