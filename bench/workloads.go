package main

import (
	"regexp"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// dailyEvents is a limit that no client reaches here, whose states still live long: an empty
// bucket would need a day to fill.
const dailyEvents = 10_000

// The names of the workloads.
const (
	manyKeys      = "100,000 keys"
	hotKey        = "one hot key"
	allRefused    = "all refused"
	threeZones    = "three zones a request"
	ourAlgorithms = "our algorithms"
)

// workload is what the peers are compared by.
type workload struct {
	name       string
	about      string
	limit      limit
	clients    int
	refuses    bool // all requests are refused, rather than none
	goroutines []int
	peers      []peer
}

// workloads returns all workloads for the peers and the numbers of goroutines that were asked
// for.
func workloads(only *regexp.Regexp, goroutines []int, clients int) []workload {
	all := peers()
	limiters := slices.DeleteFunc(slices.Clone(all), func(p peer) bool { return p.floor })
	day := 24 * time.Hour
	list := []workload{
		{
			name: manyKeys, about: "one limit a request, clients drawn evenly, all admitted",
			limit: limit{dailyEvents, day, 1}, clients: clients, goroutines: []int{1, 16, 64, 256}, peers: all,
		},
		{
			name: hotKey, about: "one limit a request, always the same client, all admitted",
			limit: limit{1_000_000_000, time.Minute, 1}, clients: 1, goroutines: []int{1, 16, 64, 256}, peers: limiters,
		},
		{
			name: allRefused, about: "one limit a request, always the same client, which has used it up",
			limit: limit{1, day, 1}, clients: 1, refuses: true, goroutines: []int{1, 16, 64, 256},
			peers: append([]peer{ours(denyCacheName, "token_bucket", 0)}, limiters...),
		},
		{
			name: threeZones, about: "three limits a request: one Take, against three calls one after the other; requests/s",
			limit: limit{dailyEvents, day, 3}, clients: clients, goroutines: []int{1, 16, 256}, peers: limiters,
		},
		{
			name: ourAlgorithms, about: "one limit a request; concurrency takes a slot and gives it back",
			limit: limit{dailyEvents, day, 1}, clients: clients, goroutines: []int{64}, peers: everyAlgorithm(),
		},
	}
	list = slices.DeleteFunc(list, func(w workload) bool { return len(w.peers) == 0 })
	for i := range list {
		w := &list[i]
		w.peers = slices.DeleteFunc(slices.Clone(w.peers), func(p peer) bool {
			return !only.MatchString(w.name + "/" + p.name)
		})
		w.goroutines = slices.DeleteFunc(w.goroutines, func(n int) bool { return !slices.Contains(goroutines, n) })
	}
	return slices.DeleteFunc(list, func(w workload) bool { return len(w.peers) == 0 || len(w.goroutines) == 0 })
}

func everyAlgorithm() (list []peer) {
	for _, name := range algorithms.Names() {
		list = append(list, ours(name, name, noDenyCache))
	}
	return list
}
