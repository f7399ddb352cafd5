package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
)

// fleetResults hold the figures of every round, by cell.
type fleetResults struct{ rounds map[fleetCell][]fleetFigures }

// fleetFigure is one kind of figure.
type fleetFigure struct {
	name, format string
	of           func(fleetFigures) float64
}

var (
	fleetSpeed   = fleetFigure{"decisions/s", "%.0f", func(f fleetFigures) float64 { return f.perSecond }}
	fleetCPU     = fleetFigure{"Redis CPU a decision, µs", "%.1f", func(f fleetFigures) float64 { return f.redisCPU }}
	fleetFigured = []fleetFigure{
		fleetSpeed,
		fleetCPU,
		{"calls a decision", "%.2f", func(f fleetFigures) float64 { return max(f.calls, 0.001) }}, // lending may make none
		{"time in the script a call, µs", "%.1f", func(f fleetFigures) float64 { return max(f.script, 0.1) }},
		{"p50, µs", "%.0f", func(f fleetFigures) float64 { return f.p50 }},
		{"p99, µs", "%.0f", func(f fleetFigures) float64 { return f.p99 }},
		{"CPU of the processes a decision, µs", "%.1f", func(f fleetFigures) float64 { return f.clientCPU }},
	}
)

// means returns the geometric mean over the distributions for each round.
func (r *fleetResults) means(p *fleetPlan, peer string, processes, goroutines int, figure fleetFigure) (rounds []float64) {
	for round := range p.rounds {
		sum := 0.0
		for _, d := range p.distributions {
			sum += math.Log(figure.of(r.rounds[fleetCell{peer, d, processes, goroutines}][round]))
		}
		rounds = append(rounds, math.Exp(sum/float64(len(p.distributions))))
	}
	return rounds
}

// ratios compare one peer with another as a bound says: for each round, the geometric mean over processes
// and distributions. There are none if one of the two was not measured.
func (r *fleetResults) ratios(p *fleetPlan, b fleetBound) (rounds []float64) {
	for round := range p.rounds {
		sum, n := 0.0, 0.0
		for _, d := range p.distributions {
			for _, processes := range p.processes {
				if b.distribution != "" && (d != b.distribution || processes != b.processes) {
					continue
				}
				over, under := r.turns(b.of, b.to, d, processes, b.goroutines), r.turns(b.to, b.of, d, processes, b.goroutines)
				if round >= min(len(over), len(under)) {
					return rounds
				}
				sum += math.Log(b.figure.of(over[round]) / b.figure.of(under[round]))
				n++
			}
		}
		rounds = append(rounds, math.Exp(sum/n))
	}
	return rounds
}

// turns returns the figures of a peer for a comparison with another one: those of its turns with that one, if
// there are any.
func (r *fleetResults) turns(peer, with, distribution string, processes, goroutines int) []fleetFigures {
	c := fleetCell{peer, distribution, processes, goroutines}
	if peer == ourName && with == lendingName {
		c.peer = besideName
		if beside := r.rounds[c]; len(beside) > 0 {
			return beside
		}
		c.peer = peer
	}
	return r.rounds[c]
}

// fleetBound is what a ratio should be.
type fleetBound struct {
	figure     fleetFigure
	of, to     string
	goroutines int
	want       float64

	// Where it is not the mean over all of them.
	distribution string
	processes    int
}

func fleetBounds() (all []fleetBound) {
	for i, goroutines := range []int{1, 4, 16} {
		all = append(all,
			fleetBound{figure: fleetCPU, of: ourName, to: redisRateName, goroutines: goroutines, want: []float64{0.75, 0.5, 0.3}[i]},
			fleetBound{figure: fleetCPU, of: ourName, to: ululeName, goroutines: goroutines, want: []float64{1.05, 0.7, 0.4}[i]},
			fleetBound{figure: fleetSpeed, of: ourName, to: redisRateName, goroutines: goroutines, want: []float64{1.1, 1.5, 2.5}[i]},
			fleetBound{figure: fleetSpeed, of: ourName, to: ululeName, goroutines: goroutines, want: []float64{0.95, 1.2, 2}[i]},
			fleetBound{figure: fleetSpeed, of: lendingName, to: ourName, goroutines: goroutines, want: []float64{2, 3, 3}[i], distribution: zipf, processes: 16},
			fleetBound{figure: fleetSpeed, of: lendingName, to: ourName, goroutines: goroutines, want: 1, distribution: uniform, processes: 16})
	}
	return all
}

// lending writes what lending makes of each kind of traffic, in turns with the fleet that does not lend.
func (r *fleetResults) lending(b *strings.Builder, p *fleetPlan) {
	for _, figure := range []fleetFigure{fleetSpeed, fleetCPU} {
		fmt.Fprintf(b, "\n%s with lend, of those without:\n\n| processes × requests | %s |\n|---|%s\n", capital(figure.name),
			strings.Join(p.distributions, " | "), strings.Repeat("---:|", len(p.distributions)))
		for _, processes := range p.processes {
			for _, goroutines := range p.goroutines {
				fmt.Fprintf(b, "| %d × %d |", processes, goroutines)
				for _, d := range p.distributions {
					rounds := r.ratios(p, fleetBound{figure: figure, of: lendingName, to: ourName, goroutines: goroutines, distribution: d, processes: processes})
					fmt.Fprintf(b, " %.2f%s |", rig.Median(rounds), rig.Spread("%.2f", rounds))
				}
				b.WriteString("\n")
			}
		}
	}
}

// markdown writes the ratios and a table for each kind of figure.
func (r *fleetResults) markdown(machine string, p *fleetPlan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n| %s, of the other's | requests under way in each process |", machine, ourName)
	for _, peer := range p.peers[1:] {
		fmt.Fprintf(&b, " %s |", peer)
	}
	b.WriteString("\n|---|---:|" + strings.Repeat("---:|", len(p.peers)-1) + "\n")
	for _, figure := range fleetFigured {
		for _, goroutines := range p.goroutines {
			fmt.Fprintf(&b, "| %s | %d |", figure.name, goroutines)
			for _, peer := range p.peers[1:] {
				rounds := r.ratios(p, fleetBound{figure: figure, of: ourName, to: peer, goroutines: goroutines})
				fmt.Fprintf(&b, " %.2f%s |", rig.Median(rounds), rig.Spread("%.2f", rounds))
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n| what | requests under way in each process | measured | of the floor | meant to be | |\n|---|---:|---:|---:|---:|---|\n")
	for _, bound := range fleetBounds() {
		rounds := r.ratios(p, bound)
		got := rig.Median(rounds)
		if math.IsNaN(got) || got == 0 {
			continue
		}
		word, met := "at least", got >= bound.want
		if bound.figure.name == fleetCPU.name {
			word, met = "at most", got <= bound.want
		}
		where, floor := "", ""
		if bound.distribution != "" {
			where = fmt.Sprintf("%s: %s, %d processes, ", bound.of, bound.distribution, bound.processes)
		} else if slices.Contains(p.peers, leastName) {
			least := bound
			least.of = leastName
			floor = fmt.Sprintf("%.2f", rig.Median(r.ratios(p, least)))
		}
		fmt.Fprintf(&b, "| %s%s, of %s's | %d | %.2f%s | %s | %s %g | %s |\n", where, bound.figure.name, bound.to, bound.goroutines, got, rig.Spread("%.2f", rounds), floor, word, bound.want,
			map[bool]string{true: "yes", false: "short"}[met])
	}
	if slices.Contains(p.peers, lendingName) {
		r.lending(&b, p)
	}
	for _, figure := range fleetFigured {
		fmt.Fprintf(&b, "\n%s:\n\n| processes × requests |", capital(figure.name))
		for _, peer := range p.peers {
			fmt.Fprintf(&b, " %s |", peer)
		}
		b.WriteString("\n|---|" + strings.Repeat("---:|", len(p.peers)) + "\n")
		for _, processes := range p.processes {
			for _, goroutines := range p.goroutines {
				fmt.Fprintf(&b, "| %d × %d |", processes, goroutines)
				for _, peer := range p.peers {
					rounds := r.means(p, peer, processes, goroutines, figure)
					fmt.Fprintf(&b, " "+figure.format+"%s |", rig.Median(rounds), rig.Spread(figure.format, rounds))
				}
				b.WriteString("\n")
			}
		}
	}
	return b.String()
}
