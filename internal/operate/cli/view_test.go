package cli

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestHostileReports: what another program has written to a store as the report of an instance neither moves the cursor of a
// terminal nor forges lines.
func TestHostileReports(t *testing.T) {
	const bad = "a\x1b[2J\nforged"
	stores := []adminapi.Store{{
		Name: bad, Breaker: bad, Error: bad, Zones: []string{bad}, Silent: []adminapi.SilentServer{{Address: bad, Error: bad}},
	}}
	for name, show := range map[string]func(*instance) error{
		"stores": (*instance).stores,
		"watch": func(c *instance) error {
			w := &watcher{instance: c}
			text, err := json.Marshal(&adminapi.Decision{Outcome: bad, Zone: bad, Reason: bad, Method: bad, Path: bad, Host: bad, ClientIP: bad, Plan: bad})
			if err != nil {
				return err
			}
			return w.print(string(text))
		},
	} {
		var out strings.Builder
		c := asking(t, &out, 0, func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(stores)
		})
		c.view = &adminapi.FleetAnswer{Instances: []adminapi.Instance{
			{Name: "me", State: adminapi.StateHere},
			{Name: bad, State: adminapi.StateReports, Differs: []string{bad}},
		}}
		c.printView()
		if err := show(c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "forged") || strings.ContainsFunc(strings.TrimSuffix(line, "\n"), unicode.IsControl) {
				t.Errorf("%s: %q in\n%q", name, line, out.String())
			}
		}
		if !strings.Contains(out.String(), "forged") {
			t.Errorf("%s: nothing is shown: %s", name, out.String())
		}
	}
}

// TestLocal: a moment that comes has the time of this place. One in a note, of long ago, stays as it was written.
func TestLocal(t *testing.T) {
	const before = "note: 'since 2020-01-02T10:00:00Z'"
	comes := time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
	got := local("banned until " + comes + ", " + before)
	if !strings.HasSuffix(got, "), "+before) || !strings.Contains(got, " (in ") || strings.Contains(got, comes) {
		t.Error(got)
	}
}

// TestOwnPlan: a key is not said to be refused under a plan that it does not have. If its plan is not known, all count.
func TestOwnPlan(t *testing.T) {
	k := adminapi.Key{Zone: "z", Plans: []adminapi.Key{
		{Plan: "free", Outcome: "limited", Why: "refusing under plan free"},
		{Plan: "pro", Outcome: "allowed"},
	}}
	for plan, want := range map[string]string{"pro": "", "free": "\nrefusing under plan free\n", "": "\nrefusing under plan free\n", "gone": "\nrefusing under plan free\n"} {
		k.Lately = &adminapi.Lately{Plan: plan}
		var out strings.Builder
		if (&screen{out: &out}).printReasons(k); out.String() != want {
			t.Errorf("last plan %q: %q", plan, out.String())
		}
	}
}
