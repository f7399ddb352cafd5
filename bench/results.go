package main

import "github.com/seed-161337e5/caddyratelimit/bench/internal/rig"

// cell is a place in the tables.
type cell struct {
	workload, peer string
	goroutines     int
}

// results hold the figures of every round, by cell.
type results struct {
	rounds map[cell][]figures
	bytes  map[string]int64 // per key, by peer
}

// median returns the median of one kind of figure over the rounds.
func (r *results) median(c cell, figure func(figures) float64) (float64, bool) {
	var all []float64
	for _, f := range r.rounds[c] {
		all = append(all, figure(f))
	}
	return rig.Median(all), len(all) > 0
}

// ratio compares one kind of figure of two peers. It is the median of the ratios of the rounds,
// so anything that slows the machine for a while slows both sides of a ratio.
func (r *results) ratio(workload, peer, to string, goroutines int, figure func(figures) float64) (float64, bool) {
	all := r.ratios(workload, peer, to, goroutines, figure)
	return rig.Median(all), len(all) > 0
}

// ratios returns those of the rounds.
func (r *results) ratios(workload, peer, to string, goroutines int, figure func(figures) float64) (all []float64) {
	over := r.rounds[cell{workload, peer, goroutines}]
	under := r.rounds[cell{workload, to, goroutines}]
	for i := range min(len(over), len(under)) {
		if divisor := figure(under[i]); divisor > 0 {
			all = append(all, figure(over[i])/divisor)
		}
	}
	return all
}

// The kinds of figures.
func perSecond(f figures) float64 { return f.perSecond }
func p50(f figures) float64       { return f.p50 }
func p99(f figures) float64       { return f.p99 }
func redisCPU(f figures) float64  { return f.redisCPU }
func clientCPU(f figures) float64 { return f.clientCPU }
func allocs(f figures) float64    { return f.allocs }
func failed(f figures) float64    { return f.failed }
