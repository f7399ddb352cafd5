package admin

import (
	"sync"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

// TestStoresOfOneConfig: while one config takes the place of another, stores and their zones are those of the same config.
func TestStoresOfOneConfig(t *testing.T) {
	configs := []*Config{configOf("a"), configOf("b")}
	done := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			registry.Lock()
			registry.configs = configs[i%2 : i%2+1]
			registry.Unlock()
		}
	})
	for range 20000 {
		for _, s := range runningStores() {
			if len(s.zones) != 1 || s.zones[0].Name != s.store.ID {
				t.Fatalf("store %s has the zones %v", s.store.ID, s.zones)
			}
		}
	}
	close(done)
	writer.Wait()
	registry.configs = nil
}

// configOf returns a config with one zone, in a store of its own.
func configOf(name string) *Config {
	z := new(zone.Zone)
	z.Name = name
	return &Config{handlers: []Handler{{Handler: &trial.Handler{Zones: []*zone.Zone{z}, Store: &pool.Ref{ID: name}}}}}
}
