package world

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestSimulate runs worlds until SEEDS of them or MINUTES are over, or the one of SEED: see make simulate.
func TestSimulate(t *testing.T) {
	if text := os.Getenv("SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		h := Run(t, Draw(seed))
		t.Logf("\n%s%s", h.Plan.zones(), h)
		if violations := Check(h); len(violations) > 0 {
			failed(t, h.Plan, violations)
		}
		return
	}
	seeds, _ := strconv.Atoi(os.Getenv("SEEDS"))
	minutes, _ := strconv.ParseFloat(os.Getenv("MINUTES"), 64)
	if seeds == 0 && minutes == 0 {
		t.Skip("make simulate runs it")
	}
	began, worlds, simulated := time.Now(), 0, time.Duration(0)
	for (seeds == 0 || worlds < seeds) && (minutes == 0 || time.Since(began).Minutes() < minutes) {
		worlds++
		seed := rand.Uint64()
		h := Run(t, Draw(seed))
		simulated += h.Length
		if violations := Check(h); len(violations) > 0 {
			failed(t, h.Plan, violations)
		}
	}
	t.Logf("%d worlds with %.1f hours in %.1f minutes", worlds, simulated.Hours(), time.Since(began).Minutes())
}
