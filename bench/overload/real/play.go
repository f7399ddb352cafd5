package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/childprocess"
)

const (
	inTime = 2 * time.Second  // a client leaves then
	ready  = 30 * time.Second // within which a process must answer
	polite = 20               // keys beside the hog
)

// result is what clients got under one limit.
type result struct {
	limit    string
	seconds  []int       // useful answers, by the second in which they came
	asked    int         // by polite keys
	served   int         // of those
	statuses map[int]int // how many answers had which; 0 is none in time
	mu       sync.Mutex
}

func (r *result) useful() (n int) {
	for _, good := range r.seconds {
		n += good
	}
	return n
}

func (r *result) perSecond() float64 { return float64(r.useful()) / float64(len(r.seconds)) }

func (r *result) politely() float64 { return float64(r.served) / float64(max(r.asked, 1)) }

// isStatic reports whether a limit is a number.
func isStatic(limit string) bool { return limit[0] >= '0' && limit[0] <= '9' }

// bestStatic is the run of the best static limit.
func bestStatic(runs []*result) (best *result) {
	for _, r := range runs {
		if isStatic(r.limit) && (best == nil || r.useful() > best.useful()) {
			best = r
		}
	}
	return best
}

// play runs a case with one limit.
func (c *testcase) play(o *options, limit string) (r *result, err error) {
	var addresses []string
	var databases string
	for i := len(c.servers) - 1; i >= 0; i-- { // a database before the server that needs it
		address, process, err := start(c.servers[i], databases)
		if err != nil {
			return nil, err
		}
		defer func() { _ = process.Kill() }()
		if c.servers[i].role == "database" {
			databases = address
			continue
		}
		addresses = append(addresses, address)
	}
	if c.dead {
		port, err := rig.FreePort()
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", port))
	}
	caddy, err := rig.StartCaddy(o.caddy, "\t"+c.site(limit, addresses))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, caddy.Close()) }()
	stop := c.change(o, addresses[len(addresses)-1])
	defer stop()
	return c.load(o, limit, caddy.URL), nil
}

// start starts a server, and returns when it answers.
func start(s server, database string) (string, *childprocess.Process, error) {
	port, err := rig.FreePort()
	if err != nil {
		return "", nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	cmd := exec.Command(os.Args[0], "-role", s.role, "-listen", address, "-workers", fmt.Sprint(s.workers), "-took", s.took.String(), "-database", database)
	cmd.Stderr = os.Stderr
	p, err := childprocess.Start(cmd)
	if err != nil || s.role == "database" {
		return address, p, err
	}
	err = p.Await(ready, func(context.Context) error {
		response, err := http.Get("http://" + address + "/ready")
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
	return address, p, err
}

// change changes the workers of a server during the run.
func (c *testcase) change(o *options, address string) (stop func()) {
	var timers []*time.Timer
	for i, n := range c.changes {
		after := time.Duration(i) * time.Duration(o.seconds) * time.Second / time.Duration(len(c.changes))
		timers = append(timers, time.AfterFunc(after, func() {
			if response, err := http.Get(fmt.Sprintf("http://%s/workers?n=%d", address, n)); err == nil {
				_ = response.Body.Close()
			}
		}))
	}
	return func() {
		for _, t := range timers {
			t.Stop()
		}
	}
}

// load sends requests at the times that follow from the seed, whether the ones before were answered or not.
func (c *testcase) load(o *options, limit, url string) *result {
	r := &result{limit: limit, seconds: make([]int, o.seconds), statuses: make(map[int]int)}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 5000}, Timeout: inTime}
	defer client.CloseIdleConnections()
	rnd := rand.New(rand.NewSource(o.seed))
	began := time.Now()
	var wait sync.WaitGroup
	for next := 0.0; ; {
		if next += rnd.ExpFloat64() / c.perSecond; next >= float64(o.seconds) {
			break
		}
		time.Sleep(time.Until(began.Add(time.Duration(next * float64(time.Second)))))
		key := "hog"
		if rnd.Intn(4) == 0 {
			key = fmt.Sprint("polite", rnd.Intn(polite))
		}
		path := c.path(rnd)
		wait.Go(func() { r.note(began, key, ask(client, url+path, key)) })
	}
	wait.Wait()
	return r
}

// ask sends a request, and returns the status of the answer, 0 if there was none in time.
func ask(client *http.Client, url, key string) (status int) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	request.Header.Set("Key", key)
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0
	}
	return response.StatusCode
}

func (r *result) note(began time.Time, key string, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statuses[status]++
	if key != "hog" {
		r.asked++
	}
	if status != http.StatusOK {
		return
	}
	if key != "hog" {
		r.served++
	}
	if second := int(time.Since(began) / time.Second); second < len(r.seconds) {
		r.seconds[second]++
	}
}
