package limits_test

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestHeadersCountDown: the answers of three instances are those of one counter, as far as a client can
// see. Each number of requests left is told once, a request that was sent after another one was
// answered is told less, and none passes after one was refused.
func TestHeadersCountDown(t *testing.T) {
	t.Parallel()
	const limit, requests, atOnce = 2500, 3000, 48
	redis := redistest.Start(t)
	store := "store redis {\naddress " + redis.Addr() + "\n" + harness.Timeout() + "\n}\non_store_error deny\n"
	config := harness.Caddyfile("", harness.Limited("count", fmt.Sprintf("algorithm fixed_window %d/1000h", limit), store, "respond ok"))
	var caddys []*harness.Server
	for range 3 {
		caddys = append(caddys, harness.StartCaddy(t, config))
	}
	var mu sync.Mutex
	var all []harness.Answer
	var sent atomic.Int64
	var wait sync.WaitGroup
	for i := range atOnce {
		client, s := harness.NewClient(t, ""), caddys[i%len(caddys)]
		wait.Go(func() {
			for sent.Add(1) <= requests {
				a, err := harness.Send(client, s.URL("/count"))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				all = append(all, a)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if err := isCounter(all, limit); err != nil {
		t.Error(err)
	}
	// The check finds what is wrong.
	first := slices.IndexFunc(all, func(a harness.Answer) bool { return a.Status == http.StatusOK })
	refused := slices.IndexFunc(all, func(a harness.Answer) bool { return a.Status == http.StatusTooManyRequests })
	if first < 0 || refused < 0 {
		t.Fatalf("of %d requests none was admitted, or none refused", len(all))
	}
	twice := append(slices.Clone(all), all[first])
	late := all[first]
	late.Sent, late.Done = all[refused].Done.Add(time.Nanosecond), all[refused].Done.Add(time.Second)
	for name, wrong := range map[string][]harness.Answer{"a number twice": twice, "admitted after a refusal": replaced(all, first, late)} {
		if isCounter(wrong, limit) == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

func replaced(all []harness.Answer, i int, by harness.Answer) []harness.Answer {
	all = slices.Clone(all)
	all[i] = by
	return all
}

// isCounter returns an error if the answers cannot be those of a counter that allows so many requests.
// Requests that were not decided may have been charged or not.
func isCounter(all []harness.Answer, limit int64) error {
	told := make(map[int64]bool)
	undecided, refusals := 0, 0
	lefts := make([]int64, len(all)) // what is left after each request; math.MaxInt64 if it was not decided
	for i, a := range all {
		q, ok, err := harness.RateLimit(a.Header)
		switch {
		case err != nil:
			return err
		case a.Status == http.StatusTooManyRequests:
			refusals, lefts[i] = refusals+1, -1
		case a.Status != http.StatusOK || !ok:
			undecided, lefts[i] = undecided+1, math.MaxInt64
		case q.Remaining < 0 || q.Remaining >= limit || told[q.Remaining]:
			return fmt.Errorf("%d left, which is impossible or was told before", q.Remaining)
		default:
			told[q.Remaining], lefts[i] = true, q.Remaining
		}
	}
	if missing := int(limit) - len(told); refusals > 0 && missing > undecided {
		return fmt.Errorf("refused with %d of %d admitted, and %d requests were not decided", len(told), limit, undecided)
	}
	if len(told) == 0 {
		return errors.New("none was admitted")
	}
	bySent, byDone := make([]int, len(all)), make([]int, len(all))
	for i := range all {
		bySent[i], byDone[i] = i, i
	}
	slices.SortFunc(bySent, func(a, b int) int { return all[a].Sent.Compare(all[b].Sent) })
	slices.SortFunc(byDone, func(a, b int) int { return all[a].Done.Compare(all[b].Done) })
	least := limit // that was told before the request was sent
	for _, i := range bySent {
		for len(byDone) > 0 && all[byDone[0]].Done.Before(all[i].Sent) {
			least = min(least, lefts[byDone[0]])
			byDone = byDone[1:]
		}
		if left := lefts[i]; left != math.MaxInt64 && left >= max(least, 0) {
			return fmt.Errorf("%d left for a request that was sent after %d were left", left, least)
		}
	}
	return nil
}
