package compare

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/replay/engine"
)

// Configs says what differs between two configs, neither of which runs, and for which clients of some logs. Without
// logs the options may be nil.
func Configs(before, after []byte, o *replay.Options) (*adminapi.Comparison, error) {
	var configs [2]*offline.Config
	for i, text := range [][]byte{before, after} {
		alone, err := offline.Provision(text)
		if err != nil {
			return nil, fmt.Errorf("%s config: %w", [...]string{"old", "new"}[i], err)
		}
		defer alone.Release()
		configs[i] = alone
	}
	old, changed := configs[0], configs[1]
	c := &adminapi.Comparison{Zones: append([]adminapi.ZoneDiff{}, Zones(ZonesOf(old.Handlers), ZonesOf(changed.Handlers))...)}
	c.Stores = !slices.Equal(storesIn(old.Stores), storesIn(changed.Stores))
	var err error
	if c.Unjudged, err = around(before, after, c); err != nil {
		return nil, err
	}
	if o != nil && len(o.Logs) > 0 {
		c.Log, err = engine.Compare(old, changed, o)
	}
	return c, err
}

// storesIn returns the stores that handlers of a config name, in a form that can be compared, and is not shown because
// it may have secrets.
func storesIn(stores []any) (all []string) {
	for _, store := range stores {
		if store != nil {
			text, _ := json.Marshal(store)
			all = append(all, string(text))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
