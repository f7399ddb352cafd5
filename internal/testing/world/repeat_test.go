package world

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestSumsComeInOneOrder runs worlds twice in which instances send what several keys have used. The stores are given that in the
// order of a map.
func TestSumsComeInOneOrder(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector runs goroutines in another order each time")
	}
	zone := Zone{Algorithm: "token_bucket", Limit: algorithms.Limit{Events: 9, Window: time.Hour}, OnError: "allow", Usage: true}
	differ := 0
	for range 12 {
		p := &Plan{Seed: rand.Uint64(), Instances: 3, Whole: true, Zones: []Zone{zone, zone}}
		for at, of := range [][2]int{{0, 0}, {0, 1}, {1, 0}} {
			for i := range p.Instances {
				p.Events = append(p.Events, Event{At: time.Duration(10*at+i) * time.Millisecond, Kind: Request, Instance: i, Zone: of[0], Key: of[1], Cost: 1})
			}
		}
		p.sort()
		if first, again := Run(t, p).String(), Run(t, p).String(); first != again {
			differ++
			t.Logf("seed %d has two histories, which differ here:\n%s", p.Seed, difference(first, again))
		}
	}
	if differ > 1 { // one may be, on a busy machine
		t.Errorf("%d of 12 seeds have two histories", differ)
	}
}
