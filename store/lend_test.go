package store_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestTerms: rules share loans if, and only if, all that loans depend on is the same.
func TestTerms(t *testing.T) {
	t.Parallel()
	base := algorithms.Limit{Events: 100, Calendar: algorithms.Month}
	terms := func(zone, algorithm string, period time.Duration, change func(*algorithms.Limit)) uint64 {
		t.Helper()
		a, err := algorithms.Get(algorithm)
		if err != nil {
			t.Fatal(err)
		}
		l := base
		l.Location = time.FixedZone("here", 3600) // another pointer each time
		change(&l)
		r, err := store.NewLendingRule(zone, a, l, 0, period)
		if err != nil {
			t.Fatal(err)
		}
		return r.Terms()
	}
	same := func(*algorithms.Limit) {}
	of := terms("z", "fixed_window", time.Second, same)
	if again := terms("z", "fixed_window", time.Second, same); again != of {
		t.Error("equal rules have other terms")
	}
	if longer := terms("z", "fixed_window", time.Second, func(l *algorithms.Limit) { l.MaxWait = time.Second }); longer != of {
		t.Error("a process whose requests wait for longer cannot spend what it was lent before")
	}
	for what, other := range map[string]uint64{
		"zone":     terms("y", "fixed_window", time.Second, same),
		"period":   terms("z", "fixed_window", 2*time.Second, same),
		"events":   terms("z", "fixed_window", time.Second, func(l *algorithms.Limit) { l.Events++ }),
		"calendar": terms("z", "fixed_window", time.Second, func(l *algorithms.Limit) { l.Calendar = algorithms.Year }),
		"place":    terms("z", "fixed_window", time.Second, func(l *algorithms.Limit) { l.Location = time.FixedZone("there", 3600) }),
		"window": terms("z", "fixed_window", time.Second, func(l *algorithms.Limit) {
			l.Calendar, l.Location, l.Window = 0, nil, time.Hour
		}),
		"algorithm": terms("z", "token_bucket", time.Second, func(l *algorithms.Limit) {
			l.Calendar, l.Location, l.Window = 0, nil, time.Hour
		}),
		"burst": terms("z", "token_bucket", time.Second, func(l *algorithms.Limit) {
			l.Calendar, l.Location, l.Window, l.Burst = 0, nil, time.Hour, 50
		}),
	} {
		if other == of {
			t.Errorf("the %s makes no difference", what)
		}
	}
}
