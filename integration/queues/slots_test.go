//go:build deep

package queues_test

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// misbehaving works a little, and then ends in the way that the request's header names.
func misbehaving(b *harness.Backend, w http.ResponseWriter, r *http.Request) {
	do := r.Header.Get("X-Do")
	if do == "" {
		harness.Holding(b, w, r)
		return
	}
	<-time.After(8 * time.Millisecond)
	if do == "break" { // breaks off without an answer, which makes a 502
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Length", "8")
	_, _ = w.Write([]byte("some"))
	_ = http.NewResponseController(w).Flush()
	if do == "cut" { // breaks off within the answer, which makes Caddy's handler panic
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write([]byte("more"))
}

// TestConcurrencyLoad: of 64 clients at two instances, never more than eight requests are at the
// upstream at once, and all slots are free afterwards, however the requests ended. The lease is
// longer than the test may take, so every slot that is free was given back.
func TestConcurrencyLoad(t *testing.T) {
	patient.BesideOthers(t)
	const limit, clients, enough = 8, 64, 600
	upstream := harness.StartBackend(t, misbehaving)
	both := harness.StartPair(t, harness.Caddyfile("", harness.Limited("slots", "algorithm concurrency\nevents 8\nlease 10m",
		harness.Redis(redistest.Start(t).Addr()), "reverse_proxy {$UPSTREAM}")), upstream.Variable())
	client := harness.NewClient(t, "")

	ways := []struct {
		do     string
		status int // 0: the answer breaks off
	}{{"finish", 200}, {"break", 502}, {"cut", 0}}
	var passed, refused atomic.Int64
	var ended [3]atomic.Int64
	var group sync.WaitGroup
	began := time.Now()
	for n := range clients {
		group.Go(func() {
			for i := n; passed.Load() < enough && time.Since(began) < patient.Patience && !t.Failed(); i++ {
				way := i % len(ways)
				a, err := harness.Send(client, both[n%2].URL("/slots"), "X-Do", ways[way].do)
				broken := errors.Is(err, io.ErrUnexpectedEOF)
				switch {
				case err == nil && a.Status == http.StatusTooManyRequests:
					refused.Add(1)
					continue
				case a.Status != ways[way].status || broken != (ways[way].status == 0):
					t.Errorf("%s: status %d, error %v", ways[way].do, a.Status, err)
				}
				passed.Add(1)
				ended[way].Add(1)
			}
		})
	}
	group.Wait()
	_, most := upstream.Now()
	t.Logf("%d passed, %d refused in %v; at most %d at once", passed.Load(), refused.Load(), time.Since(began), most)
	for i, way := range ways {
		t.Logf("%s: %d", way.do, ended[i].Load())
		if ended[i].Load() == 0 {
			t.Errorf("no request ended with %s", way.do)
		}
	}
	if passed.Load() < enough {
		t.Errorf("%d passed within %v, want %d", passed.Load(), patient.Patience, enough)
	}
	if most > limit {
		t.Errorf("%d requests at the upstream at once, want at most %d", most, limit)
	}
	for _, s := range both {
		if lines, _ := s.Lines(); harness.CountLines(lines, "aborting with incomplete response") == 0 {
			t.Error("no handler panicked")
		}
		s.AwaitLeft(client, "slots", limit)
	}
	testSlotsBurst(t, both, upstream, limit)
}

// testSlotsBurst: a burst takes all slots. Requests that are refused give nothing back, and
// requests whose clients leave give back their slots.
func testSlotsBurst(t *testing.T, both []*harness.Server, upstream *harness.Backend, limit int) {
	t.Helper()
	client := harness.NewClient(t, "")
	var burst []*harness.Pending
	for i := range 3 * limit {
		burst = append(burst, both[i%2].Begin("/slots"))
	}
	patient.Until(t, "the burst to be decided", func() bool {
		over := 0
		for _, p := range burst {
			if p.Over() {
				over++
			}
		}
		return over == len(burst)-limit
	})
	upstream.AwaitInside(t, limit)
	for _, s := range both {
		if got := s.Admitted(client, 50, "/slots"); got != 0 {
			t.Errorf("%d admitted while all slots are taken", got)
		}
		if left := s.Left(client, "slots"); left != 0 {
			t.Errorf("%d left after refusals, want 0", left)
		}
	}

	var held []*harness.Pending
	for _, p := range burst {
		if !p.Over() {
			held = append(held, p)
		} else if a := p.Result(); a.Status != http.StatusTooManyRequests || harness.RetryAfter(t, a) != time.Second {
			t.Errorf("status %d, Retry-After %v; want 429 and 1s", a.Status, a.Header["Retry-After"])
		}
	}
	for _, p := range held[:limit/2] {
		p.Leave()
	}
	for _, s := range both {
		s.AwaitLeft(client, "slots", int64(limit/2))
	}
	upstream.AwaitInside(t, limit/2)
	upstream.Open("")
	for _, p := range held[limit/2:] {
		if a := p.Result(); a.Status != http.StatusOK {
			t.Errorf("status %d", a.Status)
		}
	}
	for _, s := range both {
		s.AwaitLeft(client, "slots", int64(limit))
		s.Sound(t)
	}
}
