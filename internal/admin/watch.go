package admin

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/doctor"
)

const (
	// watchInterval is how often the running config is looked at.
	watchInterval = 10 * time.Second

	// unmetAfter is how long a config runs before a zone that no request has met is logged.
	unmetAfter = 3 * time.Minute
)

// watched are the checks of doctor whose findings are logged.
var watched = []string{"charge", "fleet", "requests", "store"}

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
		zones := c.zones()
		var facts doctor.Facts
		for _, s := range c.stores() {
			facts.Stores = append(facts.Stores, doctor.Store{Store: s.known(nil), Remote: s.store.Store.Remote})
		}
		for _, z := range zones {
			facts.Zones = append(facts.Zones, z.traffic(zones))
		}
		for _, f := range doctor.Examine(&facts).Findings {
			about := f.Check + " " + f.Zone + f.Store
			if told[about] || f.Level != adminapi.LevelWarn || !slices.Contains(watched, f.Check) || f.Check == "requests" && age < unmetAfter {
				continue
			}
			told[about] = true
			field := zap.String("zone", f.Zone)
			if f.Store != "" {
				field = zap.String("store", f.Store)
			}
			log.Warn(f.Found+"; "+f.Fix.String(), field)
		}
	}
}
