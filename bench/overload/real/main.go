// Command real measures adaptive limits in front of real servers with a real bottleneck: a Caddy with the module, the
// upstreams and the clients are processes of their own, over HTTP on the loopback. Beside the adaptive limit, each case
// has no limit, and static limits with one queue for all, of which the best is known only afterwards.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-overload-real:", err)
		os.Exit(1)
	}
}

// options are what the flags say.
type options struct {
	caddy   string // the binary
	atOnce  int    // how many limits run at the same time
	seconds int
	seed    int64
}

func run() (err error) {
	root := flag.String("root", "..", "the root of this repository")
	only := flag.String("only", "", "only cases whose name contains this")
	write := flag.Bool("write", false, "put the tables into docs/overload.md and bench/overload/RESULTS.md")
	role, listen := flag.String("role", "", "be an upstream of this kind: pool, processor, connections or database"), flag.String("listen", "", "the address of the upstream")
	workers, took := flag.Int("workers", 8, "how many requests the upstream can do at once"), flag.Duration("took", 80*time.Millisecond, "how long one takes")
	database := flag.String("database", "", "the address of the upstream's database")
	var o options
	flag.StringVar(&o.caddy, "caddy", "", "a Caddy with the module; empty: it is built")
	flag.IntVar(&o.seconds, "seconds", 12, "how long each case runs, but for two that run twice as long")
	flag.IntVar(&o.atOnce, "at-once", 2, "how many limits are measured at the same time")
	flag.Int64Var(&o.seed, "seed", 1, "when which requests come")
	flag.Parse()
	if *role != "" {
		return serve(*role, *listen, &upstream{workers: *workers, took: *took, database: *database})
	}
	if o.caddy == "" {
		dir, err := os.MkdirTemp("", "bench-overload-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if o.caddy, err = rig.BuildCaddy(*root, dir); err != nil {
			return err
		}
	}
	text := table{about: rig.Processors()}
	for _, c := range cases() {
		if !strings.Contains(c.name, *only) {
			continue
		}
		runs, err := c.compare(o)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		for _, r := range runs {
			fmt.Fprintf(os.Stderr, "%s, %s: %v\n", c.name, r.limit, r.statuses)
		}
		text.add(c, runs)
	}
	fmt.Print(text.results())
	if !*write {
		return nil
	}
	return errors.Join(rig.Rewrite(filepath.Join(*root, "docs/overload.md"), "real", text.page()),
		rig.Rewrite(filepath.Join(*root, "bench/overload/RESULTS.md"), "real", text.results()))
}

// compare runs a case with all its limits: some at the same time, or one after the other if the processors are the
// bottleneck.
func (c *testcase) compare(o options) ([]*result, error) {
	all := make([]*result, len(c.limits))
	errs := make([]error, len(all))
	if o.seconds *= max(c.long, 1); c.alone {
		o.atOnce = 1
	}
	run := make(chan bool, o.atOnce)
	var wait sync.WaitGroup
	for i, l := range c.limits {
		wait.Go(func() {
			run <- true
			defer func() { <-run }()
			all[i], errs[i] = c.play(&o, l)
		})
	}
	wait.Wait()
	return all, errors.Join(errs...)
}
