package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/doctor"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// firstReports is how long the first reports may take: instances learn with their next heartbeat, within five seconds,
	// that somebody looks. What doctor finds comes with the heartbeat after that, within firstDiagnoses.
	firstReports   = 6500 * time.Millisecond
	firstDiagnoses = 12 * time.Second

	// lookPause is how often reports are read while some are missing, and followPause while somebody follows them.
	lookPause   = 500 * time.Millisecond
	followPause = time.Second

	// slowStore is for how long a store may not answer in time before nobody waits for reports any more.
	slowStore = 2 * time.Second

	fleetParameter = "fleet"
)

// fleetRoutes may be asked about the fleet. They add up what all instances have reported.
var fleetRoutes = []string{
	"zones", "zones/*", "top", "zones/*/top", "networks", "zones/*/networks", "zones/*/key", "stores", "doctor", "instances",
}

// showInstances shows the instances of the fleet. The parameter fleet is always set.
func showInstances(c *adminCall) (any, error) { return nil, c.checkParameters() }

// serve returns the answer of a route. If it is asked about the fleet, this is what all instances have reported. With "auto" it
// is so if other instances share a store. Alone, it is one about a fleet of one.
func (c *adminCall) serve(route string, answer func(*adminCall) (any, error)) (any, error) {
	if route == "instances" && !c.query.Has(fleetParameter) {
		c.query.Set(fleetParameter, "1")
	}
	if !slices.Contains(fleetRoutes, route) || !c.query.Has(fleetParameter) || c.request.Method != http.MethodGet {
		return answer(c)
	}
	stores, err := c.readFleet()
	if err != nil {
		return nil, err
	}
	c.view = lookAt(c.request.Context(), stores, route == "doctor") // before this instance answers, so that its counts are the newer ones
	sum, err := answer(c)
	if err != nil {
		return nil, err
	}
	all := adminapi.FleetAnswer{Instances: make([]adminapi.Instance, len(c.view.Members)), Notes: c.view.Notes, Sum: sum}
	for i := range c.view.Members {
		m := &c.view.Members[i]
		if m.Report != nil {
			m.Omitted = omitted(m.Report.Omitted, route)
			all.Counted++
		}
		all.Instances[i] = m.Instance
	}
	return all, nil
}

// readFleet returns the stores whose instances a call is about, and takes away the parameter that says so. There are none
// without it.
func (c *adminCall) readFleet() (fleetOf []*runningStore, err error) {
	if !c.query.Has(fleetParameter) {
		return nil, nil
	}
	word := c.query.Get(fleetParameter)
	if word != "1" && word != "auto" {
		return nil, adminError(badRequest, "fleet must be 1 or auto, got %q", word)
	}
	c.query.Del(fleetParameter)
	for _, s := range runningStores() {
		shared, ok := s.store.Store.Store.(store.Shared)
		if ok && (word == "1" || shared.Instances() > 1) {
			fleetOf = append(fleetOf, s)
		}
	}
	return fleetOf, nil
}

// omitted says what a report omits of what a route shows.
func omitted(all fleet.Omitted, route string) string {
	if !strings.HasSuffix(route, "top") && route != "zones/*/key" && route != "instances" {
		all.Lists = 0
	}
	if !strings.HasSuffix(route, "networks") {
		all.Networks = 0
	}
	return all.String()
}

// lookAt looks at the fleet of stores until the instances have reported that are well, and what doctor finds there if that is to be
// known.
func lookAt(ctx context.Context, stores []*runningStore, diagnoses bool) *fleet.View {
	began, patience := time.Now(), firstReports
	if diagnoses {
		patience = firstDiagnoses
	}
	answered := began
	for {
		view, outage := lookOnce(ctx, stores)
		if outage == nil {
			answered = time.Now()
		}
		// Without a store that answers, no report comes. But it, or this machine, may be slow for a moment.
		late := outage != nil && (store.Failure(outage) != store.FailureTimeout || time.Since(answered) >= slowStore)
		if late || time.Since(began) > patience || !view.Misses(diagnoses) {
			return view
		}
		select {
		case <-ctx.Done():
			return view
		case <-time.After(lookPause):
		}
	}
}

// lookOnce returns the view of the fleet at the moment, and an error if no store answers.
func lookOnce(ctx context.Context, stores []*runningStore) (view *fleet.View, outage error) {
	reports, errs := make([][]store.Report, len(stores)), make([]error, len(stores))
	var group sync.WaitGroup
	for i, s := range stores {
		group.Go(func() {
			errs[i] = withStore(ctx, s.store, func(ctx context.Context, shared store.Store) (err error) {
				reports[i], err = shared.(store.Shared).Look(ctx, true)
				return err
			})
		})
	}
	group.Wait()
	mine, _ := now()
	view = fleet.NewView(store.Process(), mine, reports...)
	for i, s := range stores {
		if n := s.store.Instances(0); n > store.MaxReports {
			view.Notes = append(view.Notes, fmt.Sprintf("%d instances share store %s, and the reports of at most %d are read",
				n, storeName(s.store), store.MaxReports))
		}
		if errs[i] != nil || !s.store.Store.Health.Answers() {
			view.Doubt()
		}
		if errs[i] != nil {
			view.Notes = append(view.Notes,
				fmt.Sprintf("what other instances report by store %s is not known: %v", storeName(s.store), errs[i]))
		}
	}
	if !slices.Contains(errs, nil) {
		outage = errors.Join(errs...)
	}
	return view, outage
}

// follow looks at the fleet of stores until the context is done. Without stores it returns nil.
func follow(ctx context.Context, stores []*runningStore) <-chan *fleet.View {
	if len(stores) == 0 {
		return nil
	}
	to := make(chan *fleet.View)
	go func() {
		ticker := time.NewTicker(followPause)
		defer ticker.Stop()
		for ctx.Err() == nil {
			view, _ := lookOnce(ctx, stores)
			select {
			case to <- view:
			case <-ctx.Done():
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	}()
	return to
}

// compareMembers has doctor compare the instances.
func compareMembers(view *fleet.View) []adminapi.Finding {
	facts := doctor.Members{Troubled: make(map[string]string)}
	for _, m := range view.Members {
		facts.All = append(facts.All, m.Instance)
		if m.Report == nil {
			continue
		}
		if m.State == adminapi.StateReports && m.Report.Diagnosis == nil {
			facts.Unchecked = append(facts.Unchecked, m.Name)
		}
		for _, s := range m.Report.Stores {
			if s.Failing || s.Breaker == store.BreakerOpen {
				facts.Troubled[m.Name] = strings.TrimSpace("requests get no answer from store " + s.Name + " " + s.Error)
			}
		}
	}
	return doctor.Compare(&facts)
}
