//go:build deep

package admin_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

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
