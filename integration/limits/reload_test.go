package limits_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// hourly is a site with a zone for each algorithm, of the algorithm's name.
func hourly(store string, events int) string {
	text := ""
	for _, algorithm := range algorithmNames {
		text += `
			handle /` + algorithm + ` {
				rate_limit {
					zone ` + algorithm + ` {
						algorithm ` + algorithm + `
						events ` + strconv.Itoa(events) + `
						window ` + quietWindow(algorithm).String() + `
					}
					` + store + `
				}
				respond ok
			}`
	}
	return harness.Caddyfile("", text)
}

// hasRate reports whether the states of a zone of hourly belong to one rate. Then another number
// of events is another rate, under which nothing has been used.
func hasRate(zone string) bool { return strings.HasSuffix(zone, "_bucket") }

// TestRaisedLimitOnReload: the part that a raised limit adds can be used at once, and what was
// used before in the same window stays used.
func TestRaisedLimitOnReload(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		s := harness.StartCaddy(t, hourly(store, 5))
		client := harness.NewClient(t, "")
		for _, zone := range algorithmNames {
			if got := s.Admitted(client, 8, "/"+zone); got != 5 {
				t.Fatalf("%s: %d of 8 admitted at a limit of 5", zone, got)
			}
		}
		s.MustLoad(hourly(store, 8))
		for _, zone := range algorithmNames {
			if a := s.GetUnder(client, 8, zone); a.Status != http.StatusOK {
				t.Errorf("%s: status %d after the limit was raised", zone, a.Status)
			}
			want := 3
			if hasRate(zone) {
				want = 8
			}
			if got := s.Admitted(client, 10, "/"+zone) + 1; got != want {
				t.Errorf("%s: %d more admitted after the limit was raised from 5 to 8, want %d", zone, got, want)
			}
		}
		s.MustLoad(hourly(store, 6))
		for _, zone := range algorithmNames {
			a := s.GetUnder(client, 6, zone)
			if hasRate(zone) {
				if got := s.Admitted(client, 10, "/"+zone); a.Status != http.StatusOK || got != 5 {
					t.Errorf("%s: status %d, then %d admitted after the rate was lowered to 6 in an hour, want 5", zone, a.Status, got)
				}
				continue
			}
			if q, _, err := harness.RateLimit(a.Header); a.Status != http.StatusTooManyRequests || err != nil || q.Remaining != 0 {
				t.Errorf("%s: status %d, %d left, error %v after the limit was lowered below what is used",
					zone, a.Status, q.Remaining, err)
			}
		}
		s.Sound(t)
	})
}

// TestPatchRaisesLimit changes one number through the admin API.
func TestPatchRaisesLimit(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		s := harness.StartCaddy(t, hourly(store, 2))
		client := harness.NewClient(t, "")
		for _, zone := range algorithmNames {
			if got := s.Admitted(client, 3, "/"+zone); got != 2 {
				t.Fatalf("%s: %d of 3 admitted at a limit of 2", zone, got)
			}
			if err := s.Patch(s.Find(zone, "max_events"), "3"); err != nil {
				t.Fatal(err)
			}
			if a := s.GetUnder(client, 3, zone); a.Status != http.StatusOK {
				t.Errorf("%s: status %d right after the limit was raised", zone, a.Status)
			}
			want := 1
			if hasRate(zone) {
				want = 3
			}
			if got := s.Admitted(client, 5, "/"+zone) + 1; got != want {
				t.Errorf("%s: %d more admitted, want %d", zone, got, want)
			}
		}
		s.Sound(t)
	})
}

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

// TestZoneForgottenWhenUnused: in memory, a zone lives as long as a config names it. The store
// itself lives on for another zone, so only the zone is forgotten.
func TestZoneForgottenWhenUnused(t *testing.T) {
	t.Parallel()
	with := hourly(harness.Memory, 2)
	s := harness.StartCaddy(t, with)
	client := harness.NewClient(t, "")
	for _, zone := range algorithmNames {
		if got := s.Admitted(client, 3, "/"+zone); got != 2 {
			t.Fatalf("%s: %d of 3 admitted at a limit of 2", zone, got)
		}
	}
	s.MustLoad(harness.Caddyfile("", `
		rate_limit {
			zone other {
				events 100
				window 1h
			}
		}
		respond ok`))
	for _, zone := range algorithmNames {
		s.GetUnder(client, -1, zone) // the policy of a zone that does not exist
	}
	s.MustLoad(with)
	for _, zone := range algorithmNames {
		if a := s.GetUnder(client, 2, zone); a.Status != http.StatusOK {
			t.Errorf("%s: status %d, want a new start", zone, a.Status)
		}
		if got := s.Admitted(client, 2, "/"+zone); got != 1 {
			t.Errorf("%s: %d more admitted, want 2 in all", zone, got+1)
		}
	}
}

var algorithmNames = []string{"token_bucket", "fixed_window", "sliding_window_log"}
