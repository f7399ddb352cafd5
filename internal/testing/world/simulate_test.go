//go:build deep

package world

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// simulation is what make simulate asks for, by variables of the environment.
type simulation struct {
	seed    uint64        // SEED: one world, whose history is shown
	worlds  int           // SEEDS: how many; 0: no bound
	lasts   time.Duration // of MINUTES; 0: no bound
	first   bool          // FIRST: it ends with the first world that breaks something, and shrinks nothing
	logged  *os.File      // LOG: a line for each seed
	isAsked bool
}

func asked(t *testing.T) (s simulation) {
	number := func(name string) float64 {
		n, err := strconv.ParseFloat(os.Getenv(name), 64)
		if err != nil && os.Getenv(name) != "" {
			t.Fatal(err)
		}
		return n
	}
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if s.seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	s.worlds, s.lasts, s.first = int(number("SEEDS")), time.Duration(number("MINUTES")*float64(time.Minute)), os.Getenv("FIRST") != ""
	if file := os.Getenv("LOG"); file != "" {
		var err error
		if s.logged, err = os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.logged.Close() })
	}
	s.isAsked = s.seed != 0 || s.worlds != 0 || s.lasts != 0
	return s
}

// TestSimulate runs worlds until SEEDS of them or MINUTES are over, or the one of SEED: see make simulate.
func TestSimulate(t *testing.T) {
	s := asked(t)
	switch {
	case !s.isAsked:
		t.Skip("make simulate runs it")
	case s.seed != 0:
		s.world(t, s.seed)
	default:
		s.run(t)
	}
}

func (s *simulation) run(t *testing.T) {
	began, worlds, simulated := time.Now(), 0, time.Duration(0)
	for (s.worlds == 0 || worlds < s.worlds) && (s.lasts == 0 || time.Since(began) < s.lasts) && (!s.first || !t.Failed()) {
		worlds++
		simulated += s.world(t, rand.Uint64()).Length
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

// world runs the world of a seed.
func (s *simulation) world(t *testing.T, seed uint64) *History {
	h, violations := ended(t, seed)
	if s.seed != 0 && !s.first {
		t.Logf("\n%s%s", h.Plan.Source()+"\n", h)
	}
	if s.logged != nil {
		_, _ = fmt.Fprintf(s.logged, "%d %s\n", seed, strings.Join(violations, "; "))
	}
	switch {
	case len(violations) == 0:
	case s.first:
		t.Errorf("seed %d: %s", seed, violations[0])
	default:
		failed(t, h.Plan, violations)
	}
	return h
}
