// Package patient waits for events in tests. A test that waits for what should come soon
// must not fail because the machine has much else to do, so here nothing has to be fast,
// except on a machine that is idle.
package patient

import (
	"os"
	"testing"
	"time"
)

// Patience is how long to wait for something that never comes. It is no bound on how long
// anything may take.
const Patience = 2 * time.Minute

// TB is what this package needs of a [testing.TB], and of a test of pgregory.net/rapid.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Until polls until a condition holds, and fails the test if it never does.
func Until(t TB, what string, holds func() bool) {
	t.Helper()
	if !poll(holds) {
		t.Fatalf("waited %v for %s", Patience, what)
	}
}

// UntilEqual polls until a value is as wanted, and fails the test if it never is.
func UntilEqual[T comparable](t TB, what string, get func() T, want T) {
	t.Helper()
	var got T
	if !poll(func() bool { got = get(); return got == want }) {
		t.Fatalf("%s: got %v for %v, want %v", what, got, Patience, want)
	}
}

// poll reports whether a condition holds before the time is up. At first it asks often, because
// most of what tests wait for comes at once. What takes longer is asked for less often, because
// many conditions are requests, which take CPU time from what they wait for.
func poll(holds func() bool) bool {
	began := time.Now()
	for !holds() {
		waited := time.Since(began)
		if waited > Patience {
			return false
		}
		time.Sleep(min(max(waited/8, 20*time.Microsecond), 10*time.Millisecond))
	}
	return true
}

// Idle reports whether the machine has nothing else to do, so that times can be measured:
// "make outages" sets IDLE=1.
func Idle() bool { return os.Getenv("IDLE") == "1" }

// Soon fails the test if something took longer than it may on an idle machine.
func Soon(t testing.TB, what string, took, most time.Duration) {
	t.Helper()
	if Idle() && took > most {
		t.Errorf("%s took %v, want at most %v", what, took, most)
	}
}

// BesideOthers runs a test beside others, unless the machine is idle: then its times are
// measured.
func BesideOthers(t *testing.T) {
	t.Helper()
	if !Idle() {
		t.Parallel()
	}
}
