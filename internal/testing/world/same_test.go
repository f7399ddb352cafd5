//go:build deep

package world

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// TestSameSeedSameHistory runs worlds twice: 20, or those of TWICE. The runtime interrupts a goroutine if it and others that it readied
// have gone on for 10 ms of the real time, also if another process had the processor. So on a busy machine one pair may differ. With TWICE
// none may, in a process that nothing interrupts, not even the thread of the runtime that would: `taskset -c 0 chrt -f 1`.
func TestSameSeedSameHistory(t *testing.T) {
	if deep.Racing(1, 0) == 1 {
		t.Skip("the race detector runs goroutines in another order each time")
	}
	differ, most, pairs := 0, 1, 20
	if n, err := strconv.Atoi(os.Getenv("TWICE")); err == nil {
		most, pairs = 0, n
	}
	for range pairs {
		p := Draw(rand.Uint64())
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
