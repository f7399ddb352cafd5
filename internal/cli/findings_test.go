package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
)

// TestOneWarningForZones: what several zones have in common, because their store does not answer, is said once with the names of
// all. What only one has, or another store, stays its own.
func TestOneWarningForZones(t *testing.T) {
	see := advice.New("see", "see store %s")
	finding := func(zone, level, found, store string) adminapi.Finding {
		return adminapi.Finding{Level: level, Check: "on_store_error", Zone: zone, Found: found, Fix: see.With(store)}
	}
	out := diagnosed(&screen{width: 60}, []adminapi.Finding{
		finding("a", adminapi.LevelWarn, "each counts for itself", "x"),
		finding("b c", adminapi.LevelWarn, "each counts for itself", "x"),
		finding("d", adminapi.LevelFail, "it refuses all", "x"),
		finding("e", adminapi.LevelWarn, "each counts for itself", "y"),
		finding("f", adminapi.LevelWarn, "each counts for itself", "x"),
		{Level: adminapi.LevelOK, Check: "limit", Zone: "a", Found: "it can refuse"},
		{Level: adminapi.LevelOK, Check: "limit", Zone: "f", Found: "it can refuse"},
	})
	const want = `zone d
  fail     on_store_error  it refuses all
                           fix: see store x
zones a, 'b c', f
  warn     on_store_error  each counts for itself
                           fix: see store x
zone e
  warn     on_store_error  each counts for itself
                           fix: see store y

2 ok, 4 warn, 1 fail
`
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	var many []adminapi.Finding
	for i := range 100 {
		many = append(many, finding(fmt.Sprint("zone-", i), adminapi.LevelWarn, "each counts for itself", "x"))
	}
	if out := diagnosed(&screen{width: 60}, many); strings.Count(out, "each counts") != 1 || !strings.Contains(out, "zone-99") {
		t.Errorf("a hundred zones:\n%s", out)
	}
}

// TestSaysWhatItWaitsFor: a person learns what a command waits for after a second, and a program does not.
func TestSaysWhatItWaitsFor(t *testing.T) {
	for _, c := range []struct {
		takes  time.Duration
		person bool
		want   string
	}{
		{900 * time.Millisecond, true, ""},
		{1100 * time.Millisecond, true, "Waiting for reports ...\n"},
		{1100 * time.Millisecond, false, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			s := new(screen)
			if c.person {
				s.waits = &out
			}
			ended := s.waiting("reports")
			time.Sleep(c.takes)
			synctest.Wait()
			ended()
			if time.Sleep(time.Minute); out.String() != c.want {
				t.Errorf("%+v: %q", c, out.String())
			}
		})
	}
}
