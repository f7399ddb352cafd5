package main

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"syscall"
	"time"
)

// A fleet is several processes on one Redis. The bench starts them once, as copies of itself, and
// then has some of them decide at the same time. They talk through their standard input and output.

// workerName is the argument with which a process of a fleet is started.
const workerName = "fleet-worker"

// order is what a process is to do: decide until the end, and count from the beginning.
type order struct {
	Peer         string
	Address      string
	Limit        fleetLimit
	Distribution string
	Clients      int
	Goroutines   int
	Begin, End   int64 // nanoseconds since 1970
}

// fleetLimit is a limit that can be sent.
type fleetLimit struct {
	Events int64
	Period time.Duration
}

// report is what came of it.
type report struct {
	Admitted, Refused, Failed int64
	Err                       string
	Steps, Counts             []uint32 // of the histogram, those that are not 0
	CPU                       time.Duration
}

// serveFleet carries out orders until there are no more. A limiter stays open once it was used.
func serveFleet(in io.Reader, out io.Writer) error {
	orders, reports, open := gob.NewDecoder(in), gob.NewEncoder(out), map[string]*limiter{}
	defer func() {
		for _, l := range open {
			_ = l.close()
		}
	}()
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		id := fmt.Sprint(o.Peer, o.Limit)
		l := open[id]
		if l == nil {
			var err error
			if l, err = openPeer(&o); err != nil {
				return err
			}
			open[id] = l
		}
		if err := reports.Encode(carryOut(l, &o)); err != nil {
			return err
		}
	}
}

func openPeer(o *order) (*limiter, error) {
	for _, p := range fleetPeers() {
		if p.name == o.Peer {
			return p.open(o.Address, limit{events: o.Limit.Events, period: o.Limit.Period, zones: 1})
		}
	}
	return nil, fmt.Errorf("there is no limiter %q", o.Peer)
}

func carryOut(l *limiter, o *order) *report {
	runtime.GC()
	begin, end := time.Unix(0, o.Begin), time.Unix(0, o.End)
	var before, after syscall.Rusage
	t := load(context.Background(), l, o.Goroutines, distribution(o.Distribution, o.Clients), time.Until(begin), end.Sub(begin),
		func() { _ = syscall.Getrusage(syscall.RUSAGE_SELF, &before) },
		func() { _ = syscall.Getrusage(syscall.RUSAGE_SELF, &after) })
	used := func(u *syscall.Rusage) time.Duration { return time.Duration(u.Utime.Nano() + u.Stime.Nano()) }
	r := &report{Admitted: t.admitted, Refused: t.refused, Failed: t.failed, CPU: used(&after) - used(&before)}
	if t.err != nil {
		r.Err = t.err.Error()
	}
	for step, n := range t.latency {
		if n > 0 {
			r.Steps, r.Counts = append(r.Steps, uint32(step)), append(r.Counts, n)
		}
	}
	return r
}

// addTo adds a report to a tally.
func (r *report) addTo(t *tally) {
	t.admitted += r.Admitted
	t.refused += r.Refused
	t.failed += r.Failed
	if r.Err != "" {
		t.err = errors.New(r.Err)
	}
	for i, step := range r.Steps {
		t.latency[step] += r.Counts[i]
	}
}

// The distributions of clients.
const (
	uniform = "uniform"
	zipf    = "Zipf(1.1)"
	hot     = "one hot key"
)

// drawer returns the client of the next request.
type drawer func() int

// distribution returns a drawer for each goroutine.
func distribution(name string, clients int) func(*rand.Rand) drawer {
	return func(r *rand.Rand) drawer {
		switch name {
		case hot:
			return func() int { return 0 }
		case zipf:
			z := rand.NewZipf(r, 1.1, 1, uint64(clients-1))
			return func() int { return int(z.Uint64()) }
		}
		return func() int { return r.IntN(clients) }
	}
}

// runWorker is the whole of a process of a fleet.
func runWorker() error { return serveFleet(os.Stdin, os.Stdout) }
