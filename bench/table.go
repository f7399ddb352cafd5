package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// writeText writes a table for each workload and number of goroutines.
func writeText(out io.Writer, machine string, workloads []workload, r *results) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\nCPU in us, latency in us; x: requests/s against %s, the median of the rounds' ratios\n", machine, redisRateName)
	for _, load := range workloads {
		for _, goroutines := range load.goroutines {
			fmt.Fprintf(w, "\n%s, %s (%s)\n", load.name, atOnce(goroutines), load.about)
			fmt.Fprintln(w, "k/s\tx\tp50\tp99\tRedis CPU\tclient CPU\tallocs\tbytes/key\terrors\t  limiter")
			for _, p := range load.peers {
				fmt.Fprintf(w, "%s\t  %s (%s)\n", r.row(load.name, p.name, goroutines), p.name, p.setup)
			}
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
	fmt.Fprintln(w, "\nwhat it is meant to be")
	fmt.Fprintln(w, "measured\twanted\t\t  claim")
	for _, c := range claims() {
		if got, ok := c.measured(r); ok {
			fmt.Fprintf(w, "%.2f\t%s\t%s\t  %s\n", got, c.bound(), verdict(c, got), c.text)
		}
	}
	return w.Flush()
}

func (r *results) row(workload, peer string, goroutines int) string {
	c := cell{workload, peer, goroutines}
	text := func(figure func(figures) float64, format string) string {
		value, _ := r.median(c, figure)
		return fmt.Sprintf(format, value)
	}
	ratio := "-"
	if x, ok := r.ratio(workload, peer, redisRateName, goroutines, perSecond); ok {
		ratio = fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.1f\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s",
		r.thousands(c), ratio, text(p50, "%.1f"), text(p99, "%.0f"), text(redisCPU, "%.2f"),
		text(clientCPU, "%.2f"), text(allocs, "%.1f"), r.bytes[peer], r.errors(c))
}

func (r *results) thousands(c cell) float64 {
	value, _ := r.median(c, perSecond)
	return value / 1000
}

func (r *results) errors(c cell) string {
	part, _ := r.median(c, failed)
	if part == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*part)
}

func verdict(c claim, got float64) string {
	if c.holds(got) {
		return "yes"
	}
	return "SHORT"
}
