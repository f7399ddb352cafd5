// Package layer says how the parts of the store build on one another. A request flows down once and back
// once. No layer knows what is above it: each decides what it can, and asks the one below for the rest.
package layer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Layer decides checks, with the help of the layer below it.
type Layer interface {
	// Take is that of [store.Store].
	Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error

	// Adjust is that of [store.Store].
	Adjust(adjustments ...store.Adjustment)

	// Forget forgets what this process knows of a key of a zone, which begins from zero.
	Forget(rule *store.Rule, key string)
}

// Validate checks what every layer relies on.
func Validate(checks []store.Check) error {
	if len(checks) > store.MaxChecks {
		return fmt.Errorf("%d checks at once, at most %d", len(checks), store.MaxChecks)
	}
	for i := range checks {
		switch c := &checks[i]; {
		case c.Cost < 0:
			return fmt.Errorf("cost must be at least 0, got %d", c.Cost)
		case len(c.LeaseID) > MaxLeaseID:
			return fmt.Errorf("%w: %d bytes, at most %d", errLeaseID, len(c.LeaseID), MaxLeaseID)
		}
	}
	return nil
}

// MaxLeaseID is how long the name of a lease may be; calls write its length as a byte.
const MaxLeaseID = 100

var errLeaseID = errors.New("the name of a lease is too long")

// Date is what the calendar needs to know of the time: microseconds since 1970.
type Date func() int64

// Of is what a rule needs to know of it.
func (today *Date) Of(rule *store.Rule) int64 {
	if rule.Limit().Calendar != 0 {
		return (*today)()
	}
	return 0
}

// At returns the numbers of a rule now.
func (today *Date) At(rule *store.Rule) *store.Prepared { return rule.At(today.Of(rule)) }

// Some are some checks of a request, for the layer below.
type Some struct {
	Checks    []store.Check
	Decisions []algorithms.Decision
	Places    []int // in the request
}

// Rest are the checks of a request that are not known.
func Rest(checks []store.Check, known *Set) (rest Some) {
	for i := range checks {
		if !known.Has(i) {
			rest.Add(checks, i)
		}
	}
	return rest
}

// Add adds the check at a place of the request.
func (s *Some) Add(checks []store.Check, place int) {
	s.Checks, s.Places = append(s.Checks, checks[place]), append(s.Places, place)
	s.Decisions = append(s.Decisions, algorithms.Decision{})
}

// Into puts the decisions where they belong among those of the request.
func (s *Some) Into(decisions []algorithms.Decision) {
	for i, place := range s.Places {
		decisions[place] = s.Decisions[i]
	}
}

// Alone reports whether all of them are decided by themselves.
func (s *Some) Alone() bool {
	return !slices.ContainsFunc(s.Checks, func(c store.Check) bool { return !c.Alone() })
}

// Pass reports whether all checks pass that are decided together.
func Pass(checks []store.Check, decisions []algorithms.Decision) bool {
	for i := range checks {
		if !checks[i].Alone() && !decisions[i].Allowed {
			return false
		}
	}
	return true
}

// Set is a set of checks of a request, by place.
type Set [(store.MaxChecks + 63) / 64]uint64

// Add adds a place.
func (s *Set) Add(place int) { s[place/64] |= 1 << (place % 64) }

// Has reports whether a place is in the set.
func (s *Set) Has(place int) bool { return s[place/64]&(1<<(place%64)) != 0 }
