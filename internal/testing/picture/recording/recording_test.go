package recording

import (
	"strings"
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

// TestIncomplete: a recording in which a request has no answer, a second is missing, or that came late, is none.
func TestIncomplete(t *testing.T) {
	const whole = `{"Limit": 5, "Offered": 8, "Seconds": 2, "Fleets": [{"Name": "f", "Sent": 16, "Late": 3.5, "Admitted": [5, 5]}]}`
	if err := parse([]byte(whole), new(Recording)); err != nil {
		t.Errorf("a whole recording: %v", err)
	}
	for _, change := range [][2]string{{"16", "15"}, {"3.5", "1000"}, {"[5, 5]", "[5]"}, {"{", "["}} {
		if err := parse([]byte(strings.Replace(whole, change[0], change[1], 1)), new(Recording)); err == nil {
			t.Errorf("%s in place of %s is no error", change[1], change[0])
		}
	}
}
