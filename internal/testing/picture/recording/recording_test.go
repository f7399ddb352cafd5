package recording

import (
	"testing"
)

// TestRecorded: in no second did more pass than may, but in those in which Redis went and came back empty. Some of their
// answers may have come in the next second.
func TestRecorded(t *testing.T) {
	r, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Fleets {
		most := r.Limit
		for second, n := range r.Fleets[i].Admitted {
			lost := r.Fleets[i].Outage && (second == int(r.Down[0]) || second == int(r.Down[1]))
			if lost {
				most = r.Offered
			}
			if n > most {
				t.Errorf("%s: %d of %d pass in second %d", r.Fleets[i].Name, n, most, second)
			}
			if most = r.Limit; lost {
				most += r.Offered - n
			}
		}
	}
}
