package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/pprof/profile"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
)

// shares are the parts of a Caddy's CPU samples that a profile finds.
type shares struct {
	ours       float64            // the directive, without the handlers behind it and without the collector
	collector  float64            // garbage collection
	stacks     float64            // growing stacks
	byFunction map[string]float64 // parts of ours, by the directive's innermost function
}

// ourPrefix begins the names of the directive's functions.
const ourPrefix = "github.com/seed-161337e5/caddyratelimit"

// server begins the names of the functions to which the directive hands a request or an answer.
// What they do is not the directive's work.
var server = []string{
	"github.com/caddyserver/caddy/v2/modules/caddyhttp.HandlerFunc.", // the next handler
	"github.com/caddyserver/caddy/v2/modules/caddyhttp.StaticResponse.",
	"github.com/caddyserver/caddy/v2/modules/caddyhttp.(*responseRecorder).",
	"github.com/caddyserver/caddy/v2/modules/caddyhttp.(*IdleTimeoutWriter).",
	"net/http.(*response).", "net/http.(*conn).",
}

// sharesOf attributes each sample to the innermost frame that is the directive's or the server's.
func sharesOf(p *profile.Profile) shares {
	s := shares{byFunction: make(map[string]float64)}
	var all float64
	last := len(p.SampleType) - 1 // CPU time
	for _, sample := range p.Sample {
		value := float64(sample.Value[last])
		all += value
		switch name := owner(sample); {
		case name == gcFrame:
			s.collector += value
		case name == stackFrame:
			s.stacks += value
		case name != "":
			s.ours += value
			s.byFunction[name] += value
		}
	}
	if all == 0 {
		return s
	}
	s.ours /= all
	s.collector /= all
	s.stacks /= all
	for name := range s.byFunction {
		s.byFunction[name] /= all
	}
	return s
}

// stackFrame grows the stack of a goroutine. Stacks shrink at each garbage collection, so each connection
// grows its stack again, wherever it is deepest. A Caddy without the directive pays that when it writes
// the answer, so it is neither the directive's nor left out: it has a column.
const stackFrame = "runtime.newstack"

const gcFrame = "runtime.gcBgMarkWorker"

// owner returns the directive's innermost function of a sample; "" if the sample is the server's;
// gcFrame if it is the collector's; stackFrame if a stack grows.
func owner(sample *profile.Sample) string {
	for _, location := range sample.Location { // the innermost first
		for _, line := range location.Line {
			name := line.Function.Name
			if name == gcFrame || strings.HasPrefix(name, "runtime.gcAssistAlloc") || name == "runtime.bgsweep" {
				return gcFrame
			}
			if name == stackFrame {
				return name
			}
			if rest, ok := strings.CutPrefix(name, ourPrefix); ok {
				return strings.TrimLeft(rest, "/.")
			}
			for _, prefix := range server {
				if strings.HasPrefix(name, prefix) {
					return ""
				}
			}
		}
	}
	return ""
}

// profiled is the result of a scenario whose CPU was sampled.
type profiled struct {
	scenario scenario
	run      run
	shares   shares
}

// profile loads the Caddy of a scenario: first to warm up, then while its CPU is sampled.
func (b *bench) profile(ctx context.Context, s scenario) (p profiled, err error) {
	fmt.Fprintln(b.progress, s.name)
	c, err := rig.StartCaddy(b.binary, s.with)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if _, err = b.load(ctx, c, s, b.time); err != nil {
		return p, err
	}
	var samples *profile.Profile
	failed := make(chan error, 1)
	go func() {
		var err error
		samples, err = cpuProfile(ctx, c, b.time)
		failed <- err
	}()
	r, err := b.load(ctx, c, s, b.time)
	if err := errors.Join(err, <-failed); err != nil {
		return p, err
	}
	return profiled{scenario: s, run: r, shares: sharesOf(samples)}, nil
}

// writeShares prints a line for each case, and then the functions of each with the largest shares.
// Shares depend less on the machine than requests/s.
func writeShares(out io.Writer, all []profiled, top int) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CASE\tDIRECTIVE\tCOLLECTOR\tSTACKS\tREQUESTS/S")
	var details strings.Builder
	for _, p := range all {
		fmt.Fprintf(table, "%s\t%.1f %%\t%.1f %%\t%.1f %%\t%.0f\n",
			p.scenario.name, 100*p.shares.ours, 100*p.shares.collector, 100*p.shares.stacks, p.run.perSecond)
		fmt.Fprintf(&details, "\n%s\n", p.scenario.name)
		names := slices.SortedFunc(maps.Keys(p.shares.byFunction), func(a, b string) int {
			return cmp.Compare(p.shares.byFunction[b], p.shares.byFunction[a])
		})
		for _, name := range names[:min(top, len(names))] {
			fmt.Fprintf(&details, "  %4.1f %%  %s\n", 100*p.shares.byFunction[name], name)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(out, details.String())
	return err
}

// cpuProfile samples the CPU for a time.
func cpuProfile(ctx context.Context, c *rig.Caddy, d time.Duration) (p *profile.Profile, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%sdebug/pprof/profile?seconds=%d", c.Admin, int(d.Seconds())), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the profile: %s", response.Status)
	}
	return profile.Parse(response.Body)
}
