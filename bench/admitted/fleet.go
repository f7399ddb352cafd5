package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/picture/recording"
)

// fleet is two instances on one Redis, and what they have answered.
type fleet struct {
	name, lend string
	outage     bool
	redis      *rig.Redis
	caddys     []*rig.Caddy
	client     *http.Client

	sent     atomic.Int64
	late     time.Duration // of the goroutine that sends
	admitted []atomic.Int64

	mu  sync.Mutex
	err error
}

// site counts all requests together. The window of a second makes the second in which a request was admitted certain: what
// may pass has passed long before the next one.
const site = `	rate_limit {
		on_store_error local
		instances %d
		zone everybody {
			algorithm fixed_window %d/1s
			%s
		}
		store redis {
			address %s
		}
	}
	respond "Hello, World!"`

func (f *fleet) start(binary string, limit int64) (err error) {
	if f.redis, err = rig.StartRedis(); err != nil {
		return err
	}
	for range instances {
		c, err := rig.StartCaddy(binary, fmt.Sprintf(site, instances, limit, f.lend, f.redis.Address))
		if err != nil {
			return errors.Join(err, f.close())
		}
		f.caddys = append(f.caddys, c)
	}
	f.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}, Timeout: 10 * time.Second}
	return nil
}

func (f *fleet) close() (err error) {
	for _, c := range f.caddys {
		err = errors.Join(err, c.Close())
	}
	return errors.Join(err, f.redis.Close())
}

// run sends requests at even distances, to one instance after the other, whether the ones before were answered or not.
func (f *fleet) run(began time.Time, warm time.Duration, r *recording.Recording) {
	f.admitted = make([]atomic.Int64, r.Seconds)
	if f.outage {
		defer f.breakRedis(began, r.Down)()
	}
	apart := time.Second / time.Duration(r.Offered)
	all := int64(r.Seconds) * r.Offered
	var wait sync.WaitGroup
	for i := -int64(warm/time.Second) * r.Offered; i < all; i++ {
		due := began.Add(time.Duration(i) * apart)
		time.Sleep(time.Until(due))
		if i >= 0 {
			f.late = max(f.late, time.Since(due))
		}
		wait.Go(func() { f.send(i, began) })
	}
	wait.Wait()
}

// breakRedis ends Redis for a while, and starts an empty one. It returns what waits for that.
func (f *fleet) breakRedis(began time.Time, down [2]float64) (wait func()) {
	at := func(seconds float64) {
		time.Sleep(time.Until(began.Add(time.Duration(seconds * float64(time.Second)))))
	}
	done := make(chan error, 1)
	go func() {
		at(down[0])
		f.redis.Kill()
		at(down[1])
		done <- f.redis.Restart()
	}()
	return func() { f.failed(<-done) }
}

// send sends the request with this number. Those of before the recording have a negative one.
func (f *fleet) send(i int64, began time.Time) {
	response, err := f.client.Get(f.caddys[(i%instances+instances)%instances].URL)
	if err != nil {
		f.failed(err)
		return
	}
	answered := time.Since(began)
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		f.failed(err)
	}
	_ = response.Body.Close()
	second := int(answered / time.Second)
	switch {
	case response.StatusCode != http.StatusOK && response.StatusCode != http.StatusTooManyRequests:
		f.failed(fmt.Errorf("%s: status %d after %v", f.name, response.StatusCode, answered))
	case response.StatusCode == http.StatusOK && answered >= 0 && second < len(f.admitted):
		f.admitted[second].Add(1)
	}
	if i >= 0 {
		f.sent.Add(1)
	}
}

func (f *fleet) failed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *fleet) result() recording.Fleet {
	r := recording.Fleet{Name: f.name, Outage: f.outage, Sent: f.sent.Load(), Late: float64(f.late.Microseconds()) / 1000}
	for i := range f.admitted {
		r.Admitted = append(r.Admitted, f.admitted[i].Load())
	}
	return r
}
