package rig

import "testing"

// TestSpread: a spread is from the smallest to the largest number, in whichever order they come.
func TestSpread(t *testing.T) {
	if got := Spread("%.1f", []float64{3, 1.26, 2}); got != ", 1.3 to 3.0" {
		t.Errorf("spread %q", got)
	}
	if got := Spread("%.1f", []float64{3}); got != "" {
		t.Errorf("one number has the spread %q", got)
	}
}
