//go:build deep

package redisstore_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestLendEqualRules: rules of equal limits spend the same loans. A config that is loaded again has other
// rules, and a limit from placeholders may have another one for each request.
func TestLendEqualRules(t *testing.T) {
	t.Parallel()
	const limit = 500
	for algorithm, l := range map[string]algorithms.Limit{
		"token_bucket": {Events: limit, Window: 24 * time.Hour},
		"fixed_window": {Events: limit, Calendar: algorithms.Month, Location: time.FixedZone("here", 3600)},
	} {
		server := redistest.Start(t)
		s := open(t, redisstore.Options{Address: server.Addr()})
		equal := func() *store.Rule {
			if l.Location != nil { // each time it is loaded, it is another pointer
				l.Location = time.FixedZone(l.Location.String(), 3600)
			}
			return lendingRule(t, "z", algorithm, l, 10*time.Second)
		}
		before := calls(t, server)
		for i := range limit {
			d, err := decideOne(s, store.Check{Rule: equal(), Key: "k", Cost: 1})
			if err != nil {
				t.Fatal(err)
			}
			if !d.Allowed {
				t.Fatalf("%s: request %d of %d is refused: %+v", algorithm, i, limit, d)
			}
		}
		if n, made := s.LoanEntries(), calls(t, server)-before; n != 1 || made > limit/5 {
			t.Errorf("%s: %d borrowers of one limit of one key, %d calls", algorithm, n, made)
		}
	}
}
