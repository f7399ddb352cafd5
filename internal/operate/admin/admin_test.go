package admin

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
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

// TestReasonIsTheSame: zones of one store have one reason, whichever connection has failed and whether the breaker is open,
// so commands can say it once.
func TestReasonIsTheSame(t *testing.T) {
	const want = "read tcp 127.0.0.1:6379: i/o timeout"
	for port := 50_001; port < 50_003; port++ {
		failed := &net.OpError{
			Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded,
			Source: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6379},
		}
		for _, err := range []error{failed, fmt.Errorf("%w: %w", store.ErrUnavailable, failed)} {
			if got := reason(err); got != want {
				t.Errorf("%v: got %q, want %q", err, got, want)
			}
		}
	}
}
