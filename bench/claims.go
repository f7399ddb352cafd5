package main

import (
	"fmt"
	"math"
)

// claim is something that this store should achieve, as a ratio or a number.
type claim struct {
	text     string
	want     float64
	atMost   bool
	measured func(r *results) (float64, bool)
}

func (c claim) holds(got float64) bool {
	if c.atMost {
		return got <= c.want
	}
	return got >= c.want
}

// bound writes the bound of a claim.
func (c claim) bound() string {
	if c.atMost {
		return fmt.Sprintf("at most %.4g", c.want)
	}
	return fmt.Sprintf("at least %.4g", c.want)
}

func claims() []claim {
	list := []claim{
		faster(manyKeys, redisRateName, 16, 1.7),
		faster(manyKeys, redisRateName, 64, 3.5),
		faster(manyKeys, redisRateName, 256, 4.5),
		faster(manyKeys, traefikName, 16, 1.7),
		faster(manyKeys, traefikName, 64, 3.5),
		faster(manyKeys, traefikName, 256, 4.5),
		fasterThanAll(manyKeys, 256, 2.5),
		faster(hotKey, redisRateName, 64, 8),
		faster(hotKey, redisRateName, 256, 15),
		cheaper(manyKeys, "Redis CPU a decision", redisRateName, 64, 1.0/3, redisCPU),
		cheaper(manyKeys, "client CPU a decision", redisRateName, 64, 1.0/4, clientCPU),
		cheaper(manyKeys, "p50", evalshaName, 1, 1.1, p50),
		{
			text: manyKeys + ", 64 goroutines: allocations a decision", want: 5, atMost: true,
			measured: func(r *results) (float64, bool) { return r.median(cell{manyKeys, ourName, 64}, allocs) },
		},
		{
			text: allRefused + ", deny cache on, 1 goroutine: nanoseconds a decision", want: 300, atMost: true,
			measured: func(r *results) (float64, bool) {
				return r.median(cell{allRefused, denyCacheName, 1}, func(f figures) float64 { return 1e9 / f.perSecond })
			},
		},
	}
	for _, goroutines := range []int{1, 16, 256} {
		list = append(list, fasterThanAll(threeZones, goroutines, 3))
	}
	return list
}

func faster(workload, than string, goroutines int, want float64) claim {
	return claim{
		text: fmt.Sprintf("%s, %s: requests/s, of %s", workload, atOnce(goroutines), than), want: want,
		measured: func(r *results) (float64, bool) { return r.ratio(workload, ourName, than, goroutines, perSecond) },
	}
}

func cheaper(workload, what, than string, goroutines int, want float64, figure func(figures) float64) claim {
	return claim{
		text: fmt.Sprintf("%s, %s: %s, of %s", workload, atOnce(goroutines), what, than), want: want, atMost: true,
		measured: func(r *results) (float64, bool) { return r.ratio(workload, ourName, than, goroutines, figure) },
	}
}

// fasterThanAll compares with the fastest of the peers.
func fasterThanAll(workload string, goroutines int, want float64) claim {
	return claim{
		text: fmt.Sprintf("%s, %s: requests/s, of the fastest peer", workload, atOnce(goroutines)), want: want,
		measured: func(r *results) (least float64, found bool) {
			least = math.Inf(1)
			for _, p := range peers() {
				if p.floor || p.name == ourName {
					continue
				}
				if ratio, ok := r.ratio(workload, ourName, p.name, goroutines, perSecond); ok {
					least, found = min(least, ratio), true
				}
			}
			return least, found
		},
	}
}

func atOnce(goroutines int) string {
	if goroutines == 1 {
		return "1 goroutine"
	}
	return fmt.Sprintf("%d goroutines", goroutines)
}
