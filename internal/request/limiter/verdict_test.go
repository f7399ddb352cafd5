package limiter

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/request/late"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestBindingZone: of several zones, the verdict names the one that binds the client most.
func TestBindingZone(t *testing.T) {
	pass := func(remaining, quota int64) algorithms.Decision {
		return algorithms.Decision{Allowed: true, Remaining: remaining, Quota: quota}
	}
	refuse := func(wait time.Duration) algorithms.Decision {
		return algorithms.Decision{RetryAfter: wait, Quota: 10}
	}
	for _, c := range []struct {
		name      string
		decisions []algorithms.Decision
		index     int
		refused   bool
	}{
		{"the smallest share left", []algorithms.Decision{pass(90, 100), pass(1, 2), pass(50, 1000)}, 2, false},
		{"the first of equal shares", []algorithms.Decision{pass(1, 2), pass(50, 100)}, 0, false},
		{"the refusal", []algorithms.Decision{pass(0, 100), refuse(time.Second), pass(0, 1)}, 1, true},
		{"the longest wait", []algorithms.Decision{refuse(time.Second), refuse(time.Minute), pass(0, 1)}, 1, true},
		{"never is the longest wait", []algorithms.Decision{refuse(algorithms.Never), refuse(time.Minute)}, 0, true},
		{"no quota", []algorithms.Decision{pass(1, 2), pass(0, 0)}, 1, false},
		{"slots may come back before their lease ends", []algorithms.Decision{refuse(2 * time.Second), pass(0, 1), pass(0, 1), refuse(time.Minute)}, 0, true},
		{"slots for as long as the client is told", []algorithms.Decision{refuse(time.Millisecond), pass(0, 1), pass(0, 1), refuse(time.Minute)}, 3, true},
	} {
		v := new(Verdict)
		for i, d := range c.decisions {
			v.Entries = append(v.Entries, Entry{Check: zone.Check{Policy: &zone.QuotaPolicy{Slots: i == 3}, Decision: d}})
		}
		if most := v.MostBinding((*Entry).isEnforced); most != &v.Entries[c.index] || most.Decision.Allowed == c.refused {
			t.Errorf("%s: got %+v, want %d, %v", c.name, most.Decision, c.index, c.refused)
		}
	}
}

// TestReset: a verdict that is used again has nothing of the request before, but for the first place of
// each list.
func TestReset(t *testing.T) {
	v := &Verdict{
		Err: ErrLeft, Failure: ErrLeft, Rejections: make([]Entry, 2), Outcome: outcome.Local, Entries: make([]Entry, 2), Binding: new(Entry),
		checks: []store.Check{{Key: "a"}, {Key: "b"}}, decisions: make([]algorithms.Decision, 2),
		Request: placeholder.Request{Request: new(http.Request), Vars: map[string]any{}},
		witness: witness{}, wait: retryWait{waited: true}, late: true, asked: 1, strips: []string{"X-Cost"}, completion: new(late.Completion),
	}
	fields := reflect.ValueOf(v).Elem()
	for i := range fields.NumField() {
		if fields.Field(i).IsZero() {
			t.Errorf("the test does not set %s", fields.Type().Field(i).Name)
		}
	}
	checks := v.checks
	v.reset()
	for i := range fields.NumField() {
		if f := fields.Field(i); !f.IsZero() && (f.Kind() != reflect.Slice || f.Len() > 0) {
			t.Errorf("%s is still %v", fields.Type().Field(i).Name, f)
		}
	}
	if checks[1].Key != "" {
		t.Errorf("the key %q is kept", checks[1].Key)
	}
}

// witness sees nothing.
type witness struct{ Witness }
