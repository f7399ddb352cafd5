package adaptive_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// slotWorld is an adaptive limit in front of an upstream that is overloaded, in time that is made up. The upstream freezes
// and fails, clients leave, handlers panic, responses are streams, and the config is loaded again with other bounds.
// All of it is drawn from a seed.
type slotWorld struct {
	t    *testing.T
	seed int64
	rnd  *rand.Rand // of the goroutine of the test

	mu      sync.Mutex
	handler caddytest.Handler
	most    int        // may run, by the configs that may have decided what runs now
	running int        // requests in the upstream that hold a slot
	started int        // requests that have got a slot
	frozen  chan bool  // closed when the upstream goes on; nil while it does
	busy    []chan int // of each worker of the upstream

	metrics func() map[string]float64 // of the config that runs
	stop    func()                    // stops it
	groups  map[string]*slotGroup
	over    sync.WaitGroup
}

// slotGroup is what happened to the requests of some clients.
type slotGroup struct{ asked, served int }

const (
	slotWait    = 500 * time.Millisecond // max_wait
	slotWorkers = 4
	slotWork    = 20 * time.Millisecond // of a request on average: the upstream can answer 200 in a second
	slotSeconds = 16
)

// load loads a config with other bounds, and stops the one before. The most that may run is what either of them says,
// until nothing happens without more time.
func (w *slotWorld) load(least, most int) {
	w.t.Helper()
	ctx := caddytest.Config(w.t)
	h := load(w.t, ctx, fmt.Sprintf(`{"name": "app", "key": "{http.request.header.Key}", "max_wait": %q, "min": %d, "max": %d,
		"priority": ["{http.request.header.Class}", "paying"]}`, slotWait, least, most))
	module, err := ctx.App("adaptive_concurrency")
	if err != nil {
		w.t.Fatal(err)
	}
	app := module.(caddy.App)
	w.mu.Lock()
	w.handler, w.most = h, max(w.most, most)
	w.mu.Unlock()
	if err := app.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.stop()
	w.stop = func() {
		if err := app.Stop(); err != nil {
			w.t.Error(err)
		}
	}
	w.metrics = func() map[string]float64 { return caddytest.Scrape(w.t, ctx) }
	synctest.Wait()
	w.mu.Lock()
	w.most = max(most, w.running)
	w.mu.Unlock()
}

// enter is a request that reaches the upstream.
func (w *slotWorld) enter() (frozen <-chan bool, worker chan int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running++
	w.started++
	if w.running > w.most {
		w.t.Errorf("seed %d: %d requests run, and at most %d may", w.seed, w.running, w.most)
	}
	return w.frozen, w.busy[w.started%len(w.busy)]
}

func (w *slotWorld) leave() {
	w.mu.Lock()
	w.running--
	w.mu.Unlock()
}

// slotRequest is a request, and what the upstream does with it.
type slotRequest struct {
	group, key, class string
	work              time.Duration
	leaves            time.Duration // after which the client leaves; 0 if it stays
	how               int           // its response
}

// The responses of an upstream.
const (
	answers = iota
	fails
	streams // goes on for a while after its header
	panics
)

// serve is the upstream.
func (q *slotRequest) serve(w *slotWorld, rw http.ResponseWriter, r *http.Request) error {
	frozen, worker := w.enter()
	defer func() {
		if q != nil {
			w.leave()
		}
	}()
	ctx := r.Context()
	select {
	case worker <- 1:
	case <-ctx.Done():
		return ctx.Err()
	}
	time.Sleep(q.work) // also if the client leaves
	<-worker
	if frozen != nil {
		select {
		case <-frozen:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	how := q.how
	q = nil
	w.leave() // before the header, because that frees the slot
	switch how {
	case fails:
		return caddyhttp.Error(http.StatusBadGateway, errors.New("the upstream fails"))
	case panics:
		panic(http.ErrAbortHandler)
	}
	rw.WriteHeader(http.StatusOK)
	if how == streams {
		select {
		case <-time.After(3 * time.Second):
		case <-ctx.Done():
		}
	}
	return nil
}

// send sends a request, and checks what happens to it.
func (w *slotWorld) send(q slotRequest) {
	rec := httptest.NewRecorder()
	r := caddytest.Request(rec, "203.0.113.7:1")
	r.Header.Set("Key", q.key)
	r.Header.Set("Class", q.class)
	ctx, cancel := context.WithCancel(r.Context())
	w.mu.Lock()
	h := w.handler
	w.mu.Unlock()
	began, reached := time.Now(), time.Time{}
	w.over.Go(func() {
		defer cancel()
		if q.leaves > 0 {
			defer time.AfterFunc(q.leaves, cancel).Stop()
		}
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // what was panicked
				panic(p)
			}
		}()
		work := q
		err := h.ServeHTTP(rec, r.WithContext(ctx), caddyhttp.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) error {
			reached = time.Now()
			return work.serve(w, rw, r)
		}))
		status := rec.Code
		if answer, ok := errors.AsType[caddyhttp.HandlerError](err); ok {
			status = answer.StatusCode
		}
		w.judge(&q, began, reached, ctx.Err() != nil, status)
	})
}

// judge checks how long a request has waited, and counts whether it was served.
func (w *slotWorld) judge(q *slotRequest, began, reached time.Time, left bool, status int) {
	waited := time.Since(began)
	if !reached.IsZero() {
		waited = reached.Sub(began)
	}
	longest := slotWait
	if q.leaves > 0 {
		longest = min(longest, q.leaves)
	}
	if waited > longest {
		w.t.Errorf("seed %d: a request of %s waited for %v, which is longer than %v", w.seed, q.key, waited, longest)
	}
	if reached.IsZero() && !left && status != http.StatusServiceUnavailable && status != http.StatusTooManyRequests {
		w.t.Errorf("seed %d: a request of %s was answered with %d", w.seed, q.key, status)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.groups[q.group]; g != nil {
		g.asked++
		if !reached.IsZero() {
			g.served++
		}
	}
}

// look checks what must hold whenever nothing can happen without more time.
func (w *slotWorld) look() {
	w.t.Helper()
	synctest.Wait()
	m := w.metrics()
	sum := func(name string) int {
		return int(m[name+"{class=paying,name=app}"] + m[name+"{class=others,name=app}"])
	}
	held, waiting, limit := sum("adaptive_running"), sum("adaptive_waiting"), int(m["adaptive_limit{name=app}"])
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case held < w.running:
		w.t.Errorf("seed %d: %d slots are taken, and %d requests run", w.seed, held, w.running)
	case waiting > 0 && 2*held < limit:
		w.t.Errorf("seed %d: %d requests wait, and %d of %d run", w.seed, waiting, held, limit)
	case limit < 1 || limit > w.most:
		w.t.Errorf("seed %d: the limit is %d", w.seed, limit)
	}
}

// freeze stops the upstream for a time.
func (w *slotWorld) freeze(d time.Duration) {
	thaw := make(chan bool)
	w.mu.Lock()
	w.frozen = thaw
	w.mu.Unlock()
	time.AfterFunc(d, func() {
		w.mu.Lock()
		w.frozen = nil
		w.mu.Unlock()
		close(thaw)
	})
}

// draw draws a request: a twelfth of the load is of polite keys, a sixth of new ones, some pays, and the rest is a hog's.
func (w *slotWorld) draw(n int, calm bool) slotRequest {
	q := slotRequest{key: "hog", work: time.Duration((0.2 + 0.8*w.rnd.ExpFloat64()) * float64(slotWork))}
	switch p := w.rnd.Intn(12); {
	case p == 0:
		q.key = "polite" + strconv.Itoa(w.rnd.Intn(10))
		if calm {
			q.group = "polite"
		}
	case p < 3:
		q.key = "new" + strconv.Itoa(n)
	case p == 3:
		q.key, q.class = "pays", "paying"
		if calm {
			q.group = "paying"
		}
	}
	if q.group == "" && w.rnd.Intn(8) == 0 {
		q.leaves = time.Duration(1 + w.rnd.Int63n(int64(time.Second)))
	}
	if p := w.rnd.Intn(100); p < 8 {
		q.how = 1 + p%3
	}
	return q
}

// trouble does one thing that happens to a limit. It returns for how long keys are not treated alike because of it: those
// whose requests were frozen have had the slots for longer.
func (w *slotWorld) trouble() (unlike time.Duration) {
	switch w.rnd.Intn(4) {
	case 0:
		d := time.Duration(200+w.rnd.Intn(600)) * time.Millisecond
		w.freeze(d)
		return d + 5*time.Second
	case 1:
		least := 1 + w.rnd.Intn(4)
		w.load(least, least+w.rnd.Intn(40))
		w.look()
		return time.Second
	}
	return 0
}

// play plays the world of a seed.
func (w *slotWorld) play() {
	for range slotWorkers {
		w.busy = append(w.busy, make(chan int, 1))
	}
	w.groups, w.stop = map[string]*slotGroup{"polite": {}, "paying": {}}, func() {}
	w.load(1, 30)
	defer func() { w.stop() }()
	began := time.Now()
	calm := began.Add(4 * time.Second) // keys are new until they were served
	next, look := began, began
	for n := 0; time.Since(began) < slotSeconds*time.Second; n++ {
		next = next.Add(time.Duration(w.rnd.ExpFloat64() * float64(time.Second) / 500))
		time.Sleep(time.Until(next))
		if w.send(w.draw(n, time.Now().After(calm))); !time.Now().Before(look) {
			w.look()
			look = look.Add(200 * time.Millisecond)
			if w.rnd.Intn(6) == 0 {
				if until := time.Now().Add(w.trouble()); until.After(calm) {
					calm = until
				}
			}
		}
	}
	w.over.Wait()
	time.Sleep(time.Second) // slots of clients that have left are held for a while
	w.look()
	if m := w.metrics(); w.running != 0 || m["adaptive_waiting{class=others,name=app}"] != 0 {
		w.t.Errorf("seed %d: %d run in the end", w.seed, w.running)
	}
	ended := 0.0
	for name, n := range w.metrics() {
		if len(name) > 22 && name[:22] == "adaptive_answers_total" {
			ended += n
		}
	}
	if int(ended) != w.started {
		w.t.Errorf("seed %d: %d requests had a slot, and %v ended", w.seed, w.started, ended)
	}
	for name, g := range w.groups {
		w.t.Logf("seed %d: %s: %d of %d served", w.seed, name, g.served, g.asked)
		if g.asked >= 30 && float64(g.served) < 0.75*float64(g.asked) {
			w.t.Errorf("seed %d: %d of %d requests of the group %s were served", w.seed, g.served, g.asked, name)
		}
	}
}

// TestSlotWorld plays a few worlds.
func TestSlotWorld(t *testing.T) {
	for _, seed := range []int64{1, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			(&slotWorld{t: t, seed: seed, rnd: rand.New(rand.NewSource(seed))}).play()
		})
	}
}
