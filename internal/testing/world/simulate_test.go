//go:build deep

package world

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestSimulate runs worlds with fresh seeds until MINUTES are over, or the one of SEED, whose history is shown: see make simulate. With
// FIRST it ends with the first world that breaks something, and shrinks nothing.
func TestSimulate(t *testing.T) {
	if text := os.Getenv("SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		h, violations := ended(t, seed)
		if t.Logf("\n%s\n%s", h.Plan.Source(), h); len(violations) > 0 {
			failed(t, h.Plan, violations)
		}
		return
	}
	lasts, err := time.ParseDuration(os.Getenv("MINUTES") + "m")
	if err != nil {
		t.Skip("make simulate runs it")
	}
	first, began, worlds, simulated := os.Getenv("FIRST") != "", time.Now(), 0, time.Duration(0)
	for time.Since(began) < lasts && (!first || !t.Failed()) {
		h, violations := ended(t, rand.Uint64())
		worlds++
		simulated += h.Length
		switch {
		case len(violations) == 0:
		case first:
			t.Errorf("seed %d: %s", h.Plan.Seed, violations[0])
		default:
			failed(t, h.Plan, violations)
		}
	}
	t.Logf("%d worlds with %.1f hours in %.1f minutes", worlds, simulated.Hours(), time.Since(began).Minutes())
}

// longestWorld is after how much of the real time a world is given up. A usual one takes 15 ms.
const longestWorld = 20 * time.Second

// ended runs the world of a seed, and returns what it has broken. It panics if the world does not end, as with a script that loops.
func ended(t *testing.T, seed uint64) (h *History, violations []string) {
	timer := time.AfterFunc(longestWorld, func() { panic(fmt.Sprintf("seed %d: the world does not end", seed)) })
	defer timer.Stop()
	h = Run(t, Draw(seed))
	return h, Check(h)
}
