package harness

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// Memory and Redis are lines of a Caddyfile. Tests that count exactly give Redis more time than
// users do, and answer 503 without it: on a busy machine, a request that was let through because
// Redis was late would look like a limit that is exceeded.
const Memory = "store memory\n"

// Redis names the store at an address, see [Memory].
func Redis(address string) string {
	return "store redis {\naddress " + address + "\ntimeout 10s\n}\non_store_error deny\n"
}

// Timeout is how long decisions may take in tests where Redis goes away and comes back: as long
// as users have it on an idle machine, and longer on a busy one, where a healthy Redis may be
// late.
func Timeout() string { return "timeout " + DecisionTime().String() }

// DecisionTime is what [Timeout] gives decisions.
func DecisionTime() time.Duration {
	if patient.Idle() {
		return 50 * time.Millisecond
	}
	return time.Second
}

// EachStore runs a test with each store. The Redis is the test's own.
func EachStore(t *testing.T, test func(t *testing.T, store string)) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, Memory)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, Redis(redistest.Start(t).Addr()))
	})
}
