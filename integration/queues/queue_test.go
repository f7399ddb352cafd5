//go:build deep

package queues_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// clockSlack is how much two processes may differ in reading the clock of one machine.
const clockSlack = 2 * time.Millisecond

// TestQueueSpacing: 60 requests come at once to two instances, and leave one by one.
//
// The first is decided after it was sent, and each of the others leaves an interval or more after
// the one before it. So delays on a busy machine can make no request seem too early.
func TestQueueSpacing(t *testing.T) {
	patient.BesideOthers(t)
	const (
		requests = 60
		interval = 50 * time.Millisecond
		late     = 3 * time.Second // how much longer than ideal all of it may take
	)
	upstream := harness.StartBackend(t, func(_ *harness.Backend, w http.ResponseWriter, _ *http.Request) {})
	both := harness.StartPair(t, harness.Caddyfile("", harness.Limited("queue", "algorithm leaky_bucket 20/1s\nmode queue\nburst 80",
		harness.Redis(redistest.Start(t).Addr()), "reverse_proxy {$UPSTREAM}")), upstream.Variable())

	client := harness.NewClient(t, "")
	began := time.Now()
	var group sync.WaitGroup
	for i := range requests {
		group.Go(func() {
			a, err := harness.Send(client, both[i%2].URL("/queue"))
			if err != nil || a.Status != http.StatusOK {
				t.Errorf("status %d, error %v", a.Status, err)
			}
		})
	}
	group.Wait()

	came := upstream.Came()
	if len(came) != requests {
		t.Fatalf("the upstream had %d requests, want %d", len(came), requests)
	}
	var gaps []time.Duration
	worst := time.Duration(0)
	for i, v := range came {
		turn := began.Add(time.Duration(i) * interval)
		if v.At.Before(turn.Add(-clockSlack)) {
			t.Errorf("request %d came %v too early", i, turn.Sub(v.At))
		}
		worst = max(worst, v.At.Sub(turn))
		if i > 0 {
			gaps = append(gaps, v.At.Sub(came[i-1].At))
		}
	}
	total := came[requests-1].At.Sub(came[0].At)
	slices.Sort(gaps)
	median := gaps[len(gaps)/2]
	t.Logf("%d requests left in %v; gaps from %v to %v, %v on average, %v in the middle; at most %v after their turn",
		requests, total, gaps[0], gaps[len(gaps)-1], total/(requests-1), median, worst)
	patient.Soon(t, "the latest request after its turn", worst, late)
	patient.Soon(t, "the gap in the middle", median, interval*3/2)
	patient.Soon(t, "the gap in the middle, below the interval,", interval-median, interval/2)
	for _, s := range both {
		s.Sound(t)
	}
}
