package queues_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
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

// TestQueueOrder: requests leave in the order in which Redis decided, whichever Caddy they came
// to. The client of request 3 leaves, and its Caddy hands the turn on to request 5, whose own turn
// comes back. When the client of request 5 leaves too, the turn of request 3 cannot come back,
// because request 4 in the other instance has a later one. So request 6, which comes to the other
// Caddy, gets the turn of request 5.
func TestQueueOrder(t *testing.T) {
	patient.BesideOthers(t)
	for interval := 500 * time.Millisecond; !queueOrder(t, interval); interval *= 4 {
		if t.Logf("turns each %v are too close", interval); interval > patient.Patience {
			t.Fatal("the order of a queue cannot be seen")
		}
	}
}

// queueOrder is TestQueueOrder at one turn in each interval. It returns false if the interval was
// too short for this machine.
func queueOrder(t *testing.T, interval time.Duration) bool {
	redisServer := redistest.Start(t)
	upstream := harness.StartBackend(t, func(_ *harness.Backend, w http.ResponseWriter, _ *http.Request) {})
	store := harness.Redis(redisServer.Addr())
	both := harness.StartPair(t, harness.Caddyfile("", harness.Limited("queue", "algorithm leaky_bucket 1/"+interval.String()+"\nmode queue\nburst 20",
		store, "reverse_proxy {$UPSTREAM}")), upstream.Variable())
	client := harness.NewClient(t, "")
	for _, s := range both {
		s.Left(client, "queue")                      // so that Redis and both instances know the script
		s.AwaitLog(`"the rate limit store answers"`) // which is asked once for that
	}

	calls := harness.ScriptCalls(t, redisServer)
	began := time.Now()
	late := func() bool { return time.Since(began) > 2*interval } // a request whose turn has come gives nothing back
	awaitCall := func() {
		t.Helper()
		calls++
		patient.Until(t, "Redis to be asked", func() bool { return late() || harness.ScriptCalls(t, redisServer) >= calls })
	}
	queue := make([]*harness.Pending, 6)
	for i := range queue {
		queue[i] = both[i%2].Begin("/queue", "X-Request-Id", strconv.Itoa(i))
		awaitCall()
	}
	for _, leaver := range []int{3, 5} {
		queue[leaver].Leave()
		awaitCall() // gives back
	}
	queue = append(queue, both[0].Begin("/queue", "X-Request-Id", "6"))
	awaitCall()
	if late() {
		return false
	}

	turns := map[int]int{0: 0, 1: 1, 2: 2, 4: 4, 6: 5}
	for i := range turns {
		if a := queue[i].Result(); a.Status != http.StatusOK {
			t.Errorf("request %d: status %d", i, a.Status)
		}
	}
	var order []int
	report, overtaken := "", false // by the next one, perhaps: they leave two processes
	for _, v := range upstream.Came() {
		i, err := strconv.Atoi(v.ID)
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, i)
		turn, ok := turns[i]
		after := v.At.Sub(began)
		if due := time.Duration(turn) * interval; ok && after < due-clockSlack {
			t.Errorf("request %d left after %v, want %v and a little", i, after, due)
		} else if ok {
			patient.Soon(t, fmt.Sprintf("request %d after its turn", i), after-due, interval)
			overtaken = overtaken || after-due > interval/2
		}
		report += fmt.Sprintf(" %d after %v", i, after.Round(time.Millisecond))
	}
	t.Logf("left:%s", report)
	if overtaken {
		return false
	}
	if want := []int{0, 1, 2, 4, 6}; !slices.Equal(order, want) {
		t.Errorf("left in the order %v, want %v", order, want)
	}
	if n := both[0].Waiting() + both[1].Waiting(); n != 0 {
		t.Errorf("%d still wait", n)
	}
	return true
}
