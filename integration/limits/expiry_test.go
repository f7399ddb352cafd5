package limits_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestExpiryDuringALoan: a limit expires while its instance holds a loan of a key. Requests that come later do not meet
// it, what was taken from the loan is in Redis when the loan has ended, and the rest of it is nobody's any longer.
func TestExpiryDuringALoan(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	client := harness.NewClient(t, "")
	config := func(expires string) string {
		return harness.Caddyfile("", harness.Limited("lent", "key {query.k}\nalgorithm fixed_window 100000/1000h\nlend 1s\n"+expires, "store redis {\naddress "+redis.Addr()+"\n"+harness.Timeout()+"\n}\n", "respond ok"))
	}
	s := harness.StartCaddy(t, config(""))
	counted := int64(0)
	for life := time.Second; counted < 100; life *= 2 { // it has expired before the requests come, if the machine is busy
		s.MustLoad(config("expires " + time.Now().Add(life+time.Second).UTC().Format(time.RFC3339)))
		patient.Until(t, "the limit to expire", func() bool {
			a := s.Get(client, "/lent?k=a")
			if a.Status != 200 {
				t.Fatalf("status %d", a.Status)
			}
			if a.Header.Get("RateLimit") == "" {
				return true
			}
			counted++
			return false
		})
	}
	s.AwaitUsed("what was taken from the loan", "lent", "a", counted)
}
