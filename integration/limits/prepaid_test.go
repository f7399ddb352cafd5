//go:build deep

package limits_test

import (
	"net/http"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestPrepaidInTrouble: what three instances hold passes while Redis is gone, and nothing else does. An instance that
// stops gives back what it holds, one that dies does not, and a Redis that was emptied lets the limit pass once more.
func TestPrepaidInTrouble(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	config := harness.Caddyfile("", harness.Limited("z", "algorithm fixed_window 600/1000h\nlend 10s",
		"store redis {\naddress "+redis.Addr()+"\n"+harness.Timeout()+"\n}\non_store_error deny\n", "respond ok"))
	var fleet []*harness.Server
	for range 3 {
		fleet = append(fleet, harness.StartCaddy(t, config))
	}
	client, passed := harness.NewClient(t, ""), int64(0)
	ask := func(s *harness.Server) (status int) {
		if status = s.Get(client, "/z").Status; status == http.StatusOK {
			passed++
		}
		return status
	}
	used := func() int64 { return fleet[0].Spent("z", "").Used }
	for range 20 {
		for _, s := range fleet {
			if status := ask(s); status != http.StatusOK {
				t.Fatalf("status %d", status)
			}
		}
	}
	held := used() - passed
	if held <= 0 {
		t.Fatalf("nothing is held after %d requests", passed)
	}

	fleet[2].Stop()
	patient.Until(t, "the instance to give back what it held", func() bool { n := used() - passed; return n < held })
	held = used() - passed
	if err := fleet[1].Process.Kill(); err != nil { // what it holds counts, and is lost
		t.Fatal(err)
	}
	if now := used() - passed; now != held {
		t.Errorf("%d are held after an instance was killed, want %d", now, held)
	}

	redis.Kill()
	before := passed
	patient.Until(t, "the other one to have spent what it held", func() bool { return ask(fleet[0]) == http.StatusServiceUnavailable })
	if n := passed - before; n > held {
		t.Errorf("%d passed without Redis, at most %d were held", n, held)
	}

	redis.Restart() // which has nothing of before
	passed = 0
	patient.Until(t, "the limit to be used up", func() bool { return ask(fleet[0]) == http.StatusTooManyRequests && passed >= 600 })
	for range 30 {
		ask(fleet[0])
	}
	if passed != 600 {
		t.Errorf("%d passed after Redis was emptied, want 600", passed)
	}
}
