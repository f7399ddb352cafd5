package running

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

// TestStoresOfOneConfig: while one config takes the place of another, stores and their zones are those of the same config.
func TestStoresOfOneConfig(t *testing.T) {
	configs := []*Config{configOf("a"), configOf("b")}
	var done atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; !done.Load(); i++ {
			registry.Lock()
			registry.configs = configs[i%2 : i%2+1]
			registry.Unlock()
		}
	})
	for range 20000 {
		for _, s := range Stores() {
			if len(s.Zones) != 1 || s.Zones[0].Name != s.Ref.ID {
				t.Fatalf("store %s has the zones %v", s.Ref.ID, s.Zones)
			}
		}
	}
	done.Store(true)
	writer.Wait()
	registry.configs = nil
}

// configOf returns a config with one zone, in a store of its own.
func configOf(name string) *Config {
	z := new(zone.Zone)
	z.Name = name
	return &Config{handlers: []*trial.Handler{{Zones: []*zone.Zone{z}, Store: &pool.Ref{ID: name}}}}
}

// TestSummary: what is logged of a reload that changes thousands of zones is bounded.
func TestSummary(t *testing.T) {
	var all []adminapi.ZoneDiff
	for i := range 5000 {
		all = append(all, adminapi.ZoneDiff{Zone: fmt.Sprint(i), Kind: adminapi.ZoneGone, Changes: []string{"was 5/1h"}})
	}
	if text := summary(all); !strings.HasSuffix(text, "; zone 9 is gone: was 5/1h; and 4990 more") {
		t.Errorf("%q", text)
	}
	all[0].Zone = strings.Repeat("\x01", 1<<20)
	if text := summary(all); len(text) > 2048 || !strings.HasSuffix(text, "...") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}

// TestLastReport: when its store is closed, no config of an instance runs any more. It still reports what it has counted.
func TestLastReport(t *testing.T) {
	r := &reporter{last: fleet.Encode(&fleet.Report{
		Name: "x", Now: time.Now(), Zones: []fleet.Zone{{Name: "z", ZoneCounts: adminapi.ZoneCounts{Totals: map[string]uint64{"allowed": 7}}}},
	})}
	read, err := fleet.Decode(r.write())
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Zones) != 1 || read.Zones[0].Totals["allowed"] != 7 || read.Now.IsZero() {
		t.Errorf("%+v", read)
	}
}
