//go:build deep

package limits_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestFailedReloadKeepsCounters loads configs that fail after this module has been set up. Their
// cleanup must not release what belongs to the running config.
func TestFailedReloadKeepsCounters(t *testing.T) {
	t.Parallel()
	const valid = `
		rate_limit {
			zone one {
				events ONE
				window 1h
			}
			zone two {
				key {header.X-Api-Key}
				events 100
				window 1h
			}
			STORE
		}
		respond ok`
	broken := map[string]struct{ site, complaint string }{
		"a later handler": {
			valid + "\nreverse_proxy 127.0.0.1:1 {\nheader_up X-A [ y\n}", "provision http.handlers.reverse_proxy",
		},
		"a handler deep in a route": {
			valid + "\nroute {\nuri path_regexp [ x\n}", "provision http.handlers.rewrite",
		},
		"a socket that cannot be opened, when all is set up": {
			valid + "\n}\n:82 {\nbind unix//nowhere/socket", "listening on unix//nowhere/socket",
		},
		"a matcher of a zone of this handler": {
			strings.Replace(valid, "X-Api-Key}", "X-Api-Key}\nmatch {\npath_regexp [\n}", 1), "error parsing regexp",
		},
		"an option of this handler": {strings.Replace(valid, "STORE", "STORE\nstatus 200", 1), "status must be from 400 to 599"},
		"a zone of this handler":    {strings.Replace(valid, "X-Api-Key}", "X-Api-Key}\nipv4_prefix 99", 1), "ipv4_prefix must be from 1 to 32"},
		"a zone defined twice": {
			valid + "\nhandle /other {\nrate_limit {\nzone one {\nevents 7\nwindow 1h\n}\nSTORE\n}\n}", "defined twice",
		},
	}
	harness.EachStore(t, func(t *testing.T, store string) {
		config := func(site, events string) string {
			return harness.Caddyfile("", strings.NewReplacer("STORE", store, "ONE", events).Replace(site))
		}
		s := harness.StartCaddy(t, config(valid, "4"))
		client := harness.NewClient(t, "")
		if got := s.Admitted(client, 2, "/one"); got != 2 {
			t.Fatalf("%d of 2 admitted at a limit of 4", got)
		}
		for what, fault := range broken {
			// A handler's zones are set up in the order of a map, so the config is loaded more
			// than once: the broken zone comes first and last.
			for range 4 {
				err := s.Load(config(fault.site, "4"))
				if err == nil || !strings.Contains(err.Error(), fault.complaint) {
					t.Fatalf("loading a config whose fault is %s: error %v, want %q", what, err, fault.complaint)
				}
			}
		}
		if a := s.Get(client, "/one"); a.Status != http.StatusOK {
			t.Errorf("status %d after failed loads, want 200", a.Status)
		} else if q, _, err := harness.RateLimit(a.Header); err != nil || q.Remaining != 1 {
			t.Errorf("after failed loads: %d left, error %v, want 1", q.Remaining, err)
		}
		// If a failed load had released what was not its own, the next good one would start from zero.
		s.MustLoad(config(valid, "5"))
		if a := s.GetUnder(client, 5, "one"); a.Status != http.StatusOK {
			t.Errorf("status %d after a good load, want 200", a.Status)
		}
		if got := s.Admitted(client, 3, "/one"); got != 1 {
			t.Errorf("%d more admitted after failed loads and a good one, want 2", got+1)
		}
		s.Sound(t)
	})
}
