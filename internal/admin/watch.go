package admin

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/doctor"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// watchInterval is how often the running config is looked at.
	watchInterval = 10 * time.Second

	// unmetAfter is how long a config runs before a zone that no request has met is logged.
	unmetAfter = 3 * time.Minute
)

// Watch logs what shows only while the config runs, each thing once: a fleet that is larger than the config
// says, zones that no request meets or is charged in, and zones without the store of the others. It returns when ctx is done.
func (c *Config) Watch(ctx context.Context, log *zap.Logger) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	told := make(map[string]bool)
	for age := watchInterval; ; age += watchInterval {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if running() != c { // another config replaces it
			continue
		}
		tell := func(name string, message string, field zap.Field) {
			if message != "" && !told[name] {
				told[name] = true
				log.Warn(message, field)
			}
		}
		for _, s := range runningStores() {
			facts := doctor.Store{InProcess: !s.store.Store.Remote}
			s.size(&facts.Fleet)
			tell("store "+s.store.ID, facts.FewInstances(), zap.String("store", storeName(s.store)))
		}
		zones := runningZones()
		for _, z := range zones {
			var facts doctor.Zone
			z.meets(&facts, zones)
			z.judges(&facts)
			z.counts(&facts)
			for check, text := range facts.Watched(age >= unmetAfter) {
				tell(check+" "+z.Name, text, zap.String("zone", z.Name))
			}
		}
	}
}

// size says how many instances share the store, and how many the config says.
func (s *runningStore) size(f *doctor.Fleet) {
	f.Configured = s.instances
	if shared, ok := s.store.Store.Store.(store.Fleet); ok {
		f.Size = shared.Instances()
	}
}
