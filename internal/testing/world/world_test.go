package world

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/lua"
)

func TestMain(m *testing.M) {
	Alone()
	if err := otherScripts(os.Getenv("SCRIPTS")); err != nil {
		panic(err)
	}
	m.Run()
}

// otherScripts has worlds run the scripts of a directory.
func otherScripts(dir string) error {
	if dir == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.lua"))
	if err != nil {
		return err
	}
	texts := make(map[lua.Script]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		texts[lua.Script(filepath.Base(file))] = string(text)
	}
	lua.Texts = func() map[lua.Script]string { return texts }
	return nil
}

// TestSameSeedSameHistory runs worlds twice: 20, or those of TWICE. The runtime interrupts a goroutine if it and others that it readied
// have gone on for 10 ms of the real time, also if another process had the processor. So on a busy machine one pair may differ, and those
// with a flood are left out, in which hundreds of goroutines go on at one instant. With TWICE none may, in a process that nothing
// interrupts, not even the thread of the runtime that would: `taskset -c 0 chrt -f 1`.
func TestSameSeedSameHistory(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector runs goroutines in another order each time")
	}
	differ, most, pairs := 0, 1, 20
	if n, err := strconv.Atoi(os.Getenv("TWICE")); err == nil {
		most, pairs = 0, n
	}
	for range pairs {
		p := Draw(rand.Uint64())
		for most > 0 && p.hasKind(Flood) {
			p = Draw(rand.Uint64())
		}
		first, again := Run(t, p).String(), Run(t, p).String()
		if first != again {
			differ++
			t.Logf("seed %d has two histories, which differ here:\n%s", p.Seed, difference(first, again))
		}
	}
	if differ > most {
		t.Errorf("%d of %d seeds have two histories", differ, pairs)
	}
}

// worlds is how many worlds a test runs, of those that "make deep" runs. With the race detector a world takes ten times
// as long. A fifth of the worlds is enough then: races are in what all worlds do, and make simulate finds the rest.
func worlds(all int) int {
	if raceDetector && !deep.Run() {
		return max(1, all/5)
	}
	return all
}

// difference shows where two texts begin to differ.
func difference(a, b string) string {
	one, two := strings.Split(a, "\n"), strings.Split(b, "\n")
	i := 0
	for i < min(len(one), len(two)) && one[i] == two[i] {
		i++
	}
	from := max(0, i-15)
	return strings.Join(one[from:min(i+4, len(one))], "\n") + "\n---\n" + strings.Join(two[from:min(i+4, len(two))], "\n")
}

// TestWorlds runs worlds with seeds that nobody has seen.
func TestWorlds(t *testing.T) {
	for range worlds(100) {
		p := Draw(rand.Uint64())
		if violations := Check(Run(t, p)); len(violations) > 0 {
			failed(t, p, violations)
		}
	}
}

// TestCheckFindsWhatIsAboveTheLimit changes histories, which are then above the limit.
func TestCheckFindsWhatIsAboveTheLimit(t *testing.T) {
	found := 0
	for seed := range uint64(worlds(40)) {
		h := Run(t, Draw(seed))
		for i := range h.Answers {
			if a := &h.Answers[i]; a.Failure == "" && !a.Decision.Allowed && a.Cost > 0 {
				a.Decision.Allowed, a.Charged = true, true // as if all had been let through
			}
		}
		found += len(Check(h))
	}
	if found == 0 {
		t.Error("nothing is above the limit when all are admitted")
	}
}

// TestPromises: docs/exactness.md says all that is checked, in the same words.
func TestPromises(t *testing.T) {
	page, err := os.ReadFile("../../../docs/exactness.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range promises {
		if !strings.Contains(string(page), "- "+p.name) {
			t.Errorf("docs/exactness.md does not say: %s", p.name)
		}
	}
}
