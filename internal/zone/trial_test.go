package zone

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

// TestWith: the policies of a copy are those of the other limit, and the zone stays as it is.
func TestWith(t *testing.T) {
	l := limit.Limit{MaxEvents: &limit.Amount{Number: 5}, Window: limit.Window{Duration: 1e9}}
	template, err := key.New("", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	z, err := New(Spec{Name: "z", Template: template, Limit: l, Salt: 7, Cost: limit.Amount{Number: 1}}, new(stats.Counters))
	if err != nil {
		t.Fatal(err)
	}
	other, err := z.LimitOf("")
	if err != nil {
		t.Fatal(err)
	}
	other.MaxEvents = &limit.Amount{Number: 50}
	c, err := z.With("", other)
	if err != nil {
		t.Fatal(err)
	}
	if c.Stats == z.Stats {
		t.Error("the copy counts in the same place")
	}
	if c.Policy.Quota != 50 || c.Policy.Rule.Salt() != 7 || z.Policy.Quota != 5 {
		t.Errorf("quota %d and %d, want 50 and 5", c.Policy.Quota, z.Policy.Quota)
	}
	if _, err := z.With("pro", other); err == nil || err.Error() != `zone "z" has no plan "pro" with a limit` {
		t.Errorf("an unknown plan: %v", err)
	}
}
