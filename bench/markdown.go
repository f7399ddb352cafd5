package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
)

// detailed is the number of goroutines for which the Markdown tables show costs.
const detailed = 64

// markdown writes the same in short: a table for each workload, with requests/s for all numbers
// of goroutines and the costs for one number.
func markdown(machine string, workloads []workload, r *results) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n", machine)
	for _, load := range workloads {
		at := load.goroutines[len(load.goroutines)-1]
		if slices.Contains(load.goroutines, detailed) {
			at = detailed
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s. Costs with %s.\n\n| limiter |", capital(load.name), capital(load.about), atOnce(at))
		for _, goroutines := range load.goroutines {
			fmt.Fprintf(&b, " k/s, %d |", goroutines)
		}
		b.WriteString(" p50 µs | p99 µs | Redis µs | client µs | allocs | bytes a key |\n|---|")
		b.WriteString(strings.Repeat("---:|", len(load.goroutines)+6) + "\n")
		for _, p := range load.peers {
			fmt.Fprintf(&b, "| %s |", p.name)
			for _, goroutines := range load.goroutines {
				b.WriteString(" " + r.speed(cell{load.name, p.name, goroutines}) + " |")
			}
			c := cell{load.name, p.name, at}
			for _, figure := range []func(figures) float64{p50, p99} {
				value, _ := r.median(c, figure)
				fmt.Fprintf(&b, " %.0f |", value)
			}
			for _, figure := range []func(figures) float64{redisCPU, clientCPU, allocs} {
				value, _ := r.median(c, figure)
				fmt.Fprintf(&b, " %.1f |", value)
			}
			fmt.Fprintf(&b, " %d |\n", r.bytes[p.name])
		}
	}
	b.WriteString("\n### Ratios\n\n| what | measured | meant to be | |\n|---|---:|---:|---|\n")
	for _, c := range claims() {
		if got, ok := c.measured(r); ok {
			fmt.Fprintf(&b, "| %s | %.2f | %s | %s |\n", c.text, got, c.bound(), strings.ToLower(verdict(c, got)))
		}
	}
	return b.String()
}

// speed shows requests/s in thousands, the ratio to redis_rate with its range over the rounds, and the part that got an error
// instead of a decision.
func (r *results) speed(c cell) string {
	text := fmt.Sprintf("%.0f", r.thousands(c))
	if all := r.ratios(c.workload, c.peer, redisRateName, c.goroutines, perSecond); len(all) > 0 && c.peer != redisRateName {
		text += fmt.Sprintf(" (%.1f×%s)", rig.Median(all), rig.Spread("%.1f", all))
	}
	if part := r.errors(c); part != "-" {
		text += ", " + strings.TrimSuffix(part, "%") + " % errors"
	}
	return text
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
