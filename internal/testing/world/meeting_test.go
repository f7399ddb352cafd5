package world

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// TestFaultsMeetAll: each fault is on while somebody asks each zone, and while operators do all that they can, and all
// promises hold. The seeds are always the same. Nobody asks an instance that is no more, and what comes to a machine that stands
// still waits until it goes on.
func TestFaultsMeetAll(t *testing.T) {
	for s := range sorts {
		if !s.trouble() {
			continue
		}
		for _, fault := range kinds(s) {
			for seed := range uint64(deep.Steps(1, 2)) {
				p := drawMeeting(seed+1, fault)
				h := Run(t, p)
				if violations := Check(h); len(violations) > 0 {
					failed(t, p, violations)
				}
				if missing := h.missing(fault.Kind); len(missing) > 0 && fault.Kind != Kill && fault.Kind != Suspend {
					t.Errorf("seed %d: %s does not meet %v", seed+1, fault.Kind, missing)
				}
			}
		}
	}
}
