package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestHowNearABanIs: a look-up of a key says how many of its refusals count towards a ban. While it
// is banned, the times are those that its next request would be told.
func TestHowNearABanIs(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		s := harness.StartCaddy(t, harness.ByQuery(store, "ban 10h after 3 refusals in 5m"))
		client := harness.NewClient(t, "")
		look := func() (k adminapi.Key) {
			t.Helper()
			text, err := s.Admin(http.MethodGet, oddZone+"/key?key=a", "", "")
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(text), &k); err != nil {
				t.Fatal(err)
			}
			return k
		}
		for refusals := range int64(3) {
			s.Admitted(client, map[bool]int{true: 2, false: 1}[refusals == 0], harness.WithKey("a"))
			if refusals == 0 {
				if r := look().Refusals; r == nil || r.Count != 0 || r.Of != 3 || r.Within != 300 || r.EndsIn != 0 {
					t.Errorf("before any refusal: %+v", r)
				}
				continue
			}
			if r := look().Refusals; r.Count != refusals || r.EndsIn <= 0 || r.EndsIn > 300 {
				t.Errorf("after %d refusals: %+v", refusals, r)
			}
			output, err := s.RateLimit("get", "odd / zone", "a")
			if want := fmt.Sprintf("refusals  %d so far; 3 in 5m lead to a ban", refusals); err != nil || !strings.Contains(output, want) {
				t.Errorf("get does not say %q: %v\n%s", want, err, output)
			}
		}
		s.Admitted(client, 1, harness.WithKey("a"))
		k := look()
		if k.Outcome != "banned" || k.Refusals.Count != 0 || k.Ban == nil || k.RetryAfter < 9*3600 ||
			k.NextAfter < 9*3600 || k.Ban.LimitRetryAfter <= 0 || k.Ban.LimitRetryAfter > 3600 || k.Used != 2 {
			t.Errorf("banned: %+v, %+v", k, k.Ban)
		}
		output, err := s.RateLimit("get", "odd / zone", "a")
		if err != nil || !strings.Contains(output, "rate-limit reset") || strings.Contains(output, "unban") {
			t.Errorf("a reset ends the ban and the refusals of the limit: %v\n%s", err, output)
		}
	})
}
