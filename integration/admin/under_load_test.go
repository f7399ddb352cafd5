//go:build deep

package admin_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestAdminUnderLoad: overrides and bans are set and cleared while requests come, and the last one
// holds.
func TestAdminUnderLoad(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		s := harness.StartCaddy(t, harness.ByQuery(store, "overrides"))
		var clients, operators sync.WaitGroup
		var over atomic.Bool
		for range 3 {
			client := harness.NewClient(t, "")
			clients.Go(func() {
				for n := 0; !over.Load(); n++ {
					a, err := harness.Send(client, s.URL(fmt.Sprintf("/?k=%d", n%2)))
					if err != nil || a.Status != http.StatusOK && a.Status != http.StatusTooManyRequests {
						t.Errorf("status %d, %v", a.Status, err)
						return
					}
				}
			})
		}
		for i := range 3 {
			operators.Go(func() {
				key := fmt.Sprintf("?key=%d", i%2)
				for range 40 {
					for _, c := range [][3]string{
						{"PUT", "/key/override", `{"limit": "3/1m"}`},
						{"PUT", "/key/ban", `{"for": "1h"}`},
						{"GET", "/key"},
						{"DELETE", "/key/ban"},
						{"PUT", "/key/override", `{"exempt": true}`},
						{"DELETE", "/key/override"},
						{"DELETE", "/key"},
					} {
						if _, err := s.Admin(c[0], oddZone+c[1]+key, "", c[2]); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		operators.Wait()
		over.Store(true)
		clients.Wait()
		client := harness.NewClient(t, "")
		for key := range 2 {
			named := fmt.Sprintf("?key=%d", key)
			s.Must("DELETE", oddZone+"/key"+named, "")
			s.Must("PUT", oddZone+"/key/override"+named, `{"limit": 3}`)
			if got := s.Admitted(client, 5, fmt.Sprintf("/?k=%d", key)); got != 3 {
				t.Errorf("key %d: %d of 5 admitted, want 3", key, got)
			}
		}
	})
}

// TestLooksChangeNothing: looking up a key neither charges it nor counts a refusal.
func TestLooksChangeNothing(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		s := harness.StartCaddy(t, harness.ByQuery(store, "ban 1h after 4 refusals in 10m"))
		client := harness.NewClient(t, "")
		looks := func(refused int, outcome string) {
			t.Helper()
			for range 5 {
				for _, path := range []string{oddZone + "/key?key=a", oddZone + "/key?key=a&cost=2"} {
					var k harness.KeyState
					if s.Ask(path, &k); k.Outcome != outcome {
						t.Fatalf("%d refused: %+v, want %s", refused, k, outcome)
					}
				}
				var found []harness.KeyState
				if s.Ask("/rate_limit/key?key=a", &found); len(found) != 1 || found[0].Outcome != outcome {
					t.Fatalf("%d refused: %+v, want %s", refused, found, outcome)
				}
			}
		}
		looks(0, "allowed")
		if got := s.Admitted(client, 2, "/?k=a"); got != 2 {
			t.Fatalf("%d of 2 admitted", got)
		}
		for refused := range 4 {
			looks(refused, "limited")
			s.Admitted(client, 1, "/?k=a")
		}
		looks(4, "banned")
	})
}
