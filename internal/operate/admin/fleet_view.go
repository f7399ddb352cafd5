package admin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/peek"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// patience is how long the first reports may take: instances learn with their next heartbeat, within five seconds, that somebody
	// looks.
	patience = 12 * time.Second

	// lookPause is how often reports are read while some are missing.
	lookPause = 500 * time.Millisecond

	fleetParameter = "fleet"
)

// serve does what a call asks for. If it is asked about the fleet, the answer is what all instances have reported that share a store.
// Alone, it is one about a fleet of one.
func (c *adminCall) serve(route string, of *operation) (any, error) {
	if !c.query.Has(fleetParameter) {
		return of.do(c)
	}
	if word := c.query.Get(fleetParameter); word != "1" {
		return nil, adminError(badRequest, "fleet must be 1, got %q", word)
	}
	c.fleet = running.Shared()
	if route == "page/stream" { // it follows the fleet
		return of.do(c)
	}
	c.view = lookAt(c.request.Context(), c.fleet) // before this instance answers, so that its counts are the newer ones
	sum, err := of.do(c)
	if err != nil {
		return nil, err
	}
	all := adminapi.FleetAnswer{Instances: c.view.Instances(), Notes: c.view.Notes, Sum: sum}
	for i := range c.view.Members {
		if c.view.Members[i].Counts() {
			all.Counted++
		}
	}
	return all, nil
}

// lookAt looks at the fleet of stores until the instances have reported that are well.
func lookAt(ctx context.Context, stores []*running.Store) *fleet.View {
	began := time.Now()
	for {
		view, answers := lookOnce(ctx, stores)
		if !answers || time.Since(began) > patience || !view.Misses() { // without a store that answers, no report comes
			return view
		}
		select {
		case <-ctx.Done():
			return view
		case <-time.After(lookPause):
		}
	}
}

// lookOnce returns the view of the fleet at the moment, and whether a store answers. Nothing follows from what the reports of a store
// say that does not answer, or not in time: they may be old.
func lookOnce(ctx context.Context, stores []*running.Store) (view *fleet.View, answers bool) {
	reports, errs := make([][]store.Report, len(stores)), make([]error, len(stores))
	var group sync.WaitGroup
	for i, s := range stores {
		group.Go(func() {
			errs[i] = peek.WithStore(ctx, s.Ref, func(ctx context.Context, shared store.Store) (err error) {
				reports[i], err = shared.(store.Shared).Look(ctx, true)
				return err
			})
		})
	}
	group.Wait()
	var notes []string
	for i, s := range stores {
		if n := s.Ref.Instances(0); n > store.MaxReports {
			notes = append(notes, fmt.Sprintf("%d instances share store %s, and the reports of at most %d are read", n, s.Name(), store.MaxReports))
		}
		if errs[i] == nil && !s.Ref.Store.Health.Answers() {
			errs[i] = errors.New("it fails requests")
		}
		if answers = answers || errs[i] == nil; errs[i] != nil {
			reports[i] = nil
			notes = append(notes, fmt.Sprintf("what other instances report by store %s is not known: %v", s.Name(), errs[i]))
		}
	}
	view = fleet.NewView(store.Process(), running.Tell(running.Shared(), time.Now(), 0), reports...)
	view.Notes = append(view.Notes, notes...)
	return view, answers
}

// follow looks at the fleet of stores until the context is done: again when a view is taken. Without stores it returns nil.
func follow(ctx context.Context, stores []*running.Store) <-chan *fleet.View {
	if len(stores) == 0 {
		return nil
	}
	to := make(chan *fleet.View)
	go func() {
		for ctx.Err() == nil {
			view, _ := lookOnce(ctx, stores)
			select {
			case to <- view:
			case <-ctx.Done():
			}
		}
	}()
	return to
}
