package caddyratelimit_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestUsualCost: a key whose last request was refused because of its cost is told the state for such a request, unless the
// question names a cost. A request that costs less, and passes, does not change that.
func TestUsualCost(t *testing.T) {
	address := caddytest.FreeAddress(t)
	caddytest.RunConfig(t, address, `http://`+address+` {
		rate_limit {
			zone tokens {
				key {client_ip}
				cost {header.X-Cost} 1
				rate 1000/1h
			}
		}
		respond ok
	}`)
	for _, step := range []struct {
		send    string
		status  int
		cost    int64
		last    bool
		refused bool
	}{
		{"712", 200, 1, false, false},
		{"905", 429, 905, true, true},
		{"8", 200, 905, true, true},
		{"300", 429, 300, true, true},
	} {
		if got := send(t, address, each(1, "/", "X-Cost", step.send)); got[step.status] != 1 {
			t.Errorf("cost %s: %v, want %d", step.send, got, step.status)
		}
		var k adminapi.Key
		caddytest.AdminInto(t, "zones/tokens/key?key=127.0.0.1", &k)
		if k.Cost != step.cost || k.CostLast != step.last || k.Refused != step.refused || (k.RetryAfter > 0) != step.refused {
			t.Errorf("after a request of %s: cost %d, last %t, refused %t, wait %v; want %+v", step.send, k.Cost, k.CostLast, k.Refused, k.RetryAfter, step)
		}
	}
}
