package floods_test

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestFloodDoesNotFreeRefused: the memory store fills up many times over, and clients that were
// refused before the flood are refused after it.
func TestFloodDoesNotFreeRefused(t *testing.T) {
	t.Parallel()
	const keys, clients, limit = 20_000, 16, 3
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		rate_limit {
			zone keys {
				key {header.X-Api-Key}
				events 3
				window 1h
			}
			store memory {
				max_keys 1024
			}
		}
		respond ok`))
	client := harness.NewClient(t, "")
	if got := s.Admitted(client, limit+1, "/", "X-Api-Key", "refused"); got != limit {
		t.Fatalf("%d admitted, want %d", got, limit)
	}
	var next, admitted atomic.Int64
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for {
				n := next.Add(1)
				if n > keys {
					return
				}
				a, err := harness.Send(client, s.URL("/"), "X-Api-Key", "flood-"+strconv.FormatInt(n, 10))
				if err != nil {
					t.Error(err)
					return
				}
				if a.Status == http.StatusOK {
					admitted.Add(1)
				}
			}
		})
	}
	group.Wait()
	t.Logf("%d keys came, each once, and %d were admitted", keys, admitted.Load())
	if got := s.Admitted(client, 10, "/", "X-Api-Key", "refused"); got != 0 {
		t.Errorf("%d admitted after the flood, want 0", got)
	}
	// A new client cannot take more than the limit while there is no room, either.
	if got := s.Admitted(client, 10, "/", "X-Api-Key", "newcomer"); got > limit {
		t.Errorf("%d of a newcomer admitted, want at most %d", got, limit)
	}
}
