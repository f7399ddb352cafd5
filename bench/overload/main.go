// Command overload plays upstreams with too much load, and compares limits of concurrent requests: that of
// package gate, its rivals, and the static limit that is best, which is known only afterwards. Nothing in it
// depends on the machine: times are those of the events.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// statics are the static limits of which the best is searched.
var statics = []int{1, 2, 4, 6, 8, 11, 16, 20, 24, 32, 45, 64, 90, 128, 256}

func main() {
	seeds := flag.Int("seeds", 4, "how many seeds each scenario is played with")
	first := flag.Int64("first", 1, "the first seed")
	only := flag.String("only", "", "only scenarios whose name contains this")
	trace := flag.Bool("trace", false, "print the adaptive limit and the answers of each second")
	fast := flag.Bool("fast", false, "try no static limit but the one that the tests use")
	flag.Parse()
	limits := rivals()
	t := newTable(os.Stdout, limits)
	for _, s := range scenarios() {
		if !strings.Contains(s.name, *only) {
			continue
		}
		var wg sync.WaitGroup
		seen := make([]*comparison, *seeds)
		for i := range seen {
			wg.Go(func() { seen[i] = compare(s, *first+int64(i), limits, *fast) })
		}
		wg.Wait()
		t.row(s, seen)
		if *trace {
			for i, c := range seen {
				fmt.Println("seed", *first+int64(i), "limits", c.runs[0].limits, "answers", c.runs[0].good)
			}
		}
	}
	t.worst()
}

// comparison is a scenario with one seed.
type comparison struct {
	best  int  // useful answers under the best static limit
	limit int  // that limit
	fifo  *run // the best static limit with one queue for all
	runs  []*run
}

// compare plays a scenario with all limits.
func compare(s *scenario, seed int64, limits []rival, fast bool) *comparison {
	c := &comparison{}
	tried := statics
	if fast {
		tried = []int{s.best}
	}
	for _, n := range tried {
		c.note(n, play(s, seed, fixed(n, false)))
		plain := play(s, seed, fixed(n, true))
		c.note(n, plain)
		if c.fifo == nil || plain.useful() > c.fifo.useful() {
			c.fifo = plain
		}
	}
	for _, r := range limits {
		c.runs = append(c.runs, play(s, seed, r))
	}
	return c
}

func (c *comparison) note(n int, r *run) {
	if u := r.useful(); u > c.best {
		c.best, c.limit = u, n
	}
}

// share is the useful answers of a run as a part of those under the best static limit.
func (c *comparison) share(r *run) float64 { return float64(r.useful()) / float64(c.best) }

// served is the part of the requests of the first group that were served.
func served(r *run) float64 { return float64(r.groups[0].good) / float64(max(r.groups[0].asked, 1)) }

// spread returns the least and the median.
func spread(x []float64) (least, median float64) {
	slices.Sort(x)
	return x[0], (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
