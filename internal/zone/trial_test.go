package zone

import (
	"reflect"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/limit"
)

// TestCopyHasEverything: a copy has every field of the zone, but for counters and what is noted of
// requests. The test fails when a field is new.
func TestCopyHasEverything(t *testing.T) {
	own := map[string]bool{"Stats": true, "Misses": true, "Forwarded": true, "invalid": true, "UnclearCost": true}
	z := new(Zone)
	fill(reflect.ValueOf(z).Elem(), own)
	c := reflect.ValueOf(z.Copy()).Elem()
	for i := range c.NumField() {
		name := c.Type().Field(i).Name
		if !own[name] && c.Field(i).IsZero() {
			t.Errorf("the copy has no %s", name)
		}
	}
	if z.Copy().Stats == z.Stats {
		t.Error("the copy counts in the same place")
	}
}

// fill sets all fields that can be set to something else than zero.
func fill(v reflect.Value, but map[string]bool) {
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		if but[name] || !f.CanSet() {
			continue
		}
		switch f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64:
			f.SetInt(1)
		case reflect.Uint64:
			f.SetUint(1)
		case reflect.Float64:
			f.SetFloat(1)
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
		case reflect.Struct:
			fill(f, nil)
		case reflect.Interface:
			if f.Type() == reflect.TypeFor[error]() {
				f.Set(reflect.ValueOf(errNoPlan))
			}
		}
	}
}

// TestWith: the policies of a copy are those of the other limit, and the zone stays as it is.
func TestWith(t *testing.T) {
	l := limit.Limit{MaxEvents: &limit.Amount{Number: 5}, Window: limit.Window{Duration: 1e9}}
	policies, err := NewPolicies(PolicyBuilder{Zone: "z", Limit: l, Salt: 7})
	if err != nil {
		t.Fatal(err)
	}
	z := &Zone{Name: "z", Limit: l, Builder: PolicyBuilder{Zone: "z", Limit: l, Salt: 7}, OwnPolicies: policies, Policy: policies.Fixed}
	other, err := z.LimitOf("")
	if err != nil {
		t.Fatal(err)
	}
	other.MaxEvents = &limit.Amount{Number: 50}
	c, err := z.With("", other)
	if err != nil {
		t.Fatal(err)
	}
	if c.Policy.Quota != 50 || c.Policy.Rule.Salt() != 7 || z.Policy.Quota != 5 {
		t.Errorf("quota %d and %d, want 50 and 5", c.Policy.Quota, z.Policy.Quota)
	}
	if _, err := z.With("pro", other); err == nil || err.Error() != `zone "z" has no plan "pro" with a limit` {
		t.Errorf("an unknown plan: %v", err)
	}
}
