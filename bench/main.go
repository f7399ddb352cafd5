// Command bench measures this project's Redis store beside other limiters that use Redis: with
// one redis-server of its own, on one machine, in one run. See bench/RESULTS.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
)

func main() {
	run := bench
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "fleet":
			run = func() error { return benchFleet(os.Args[2:]) }
		case workerName:
			run = runWorker
		}
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench() (err error) {
	var (
		cellTime   = flag.Duration("time", time.Second, "how long each cell of the tables is measured, each round")
		rounds     = flag.Int("rounds", 3, "how many rounds; the tables show medians")
		only       = flag.String("only", "", "measure only what matches, of \"workload/limiter\" (a regular expression)")
		goroutines = flag.String("goroutines", "1,16,64,256", "how many goroutines decide at once")
		keys       = flag.Int("keys", maxClients, "how many clients there are where there are many")
		inMarkdown = flag.Bool("markdown", false, "print Markdown")
		page       = flag.String("page", "", "also put the Markdown into this file, between <!-- bench --> and <!-- /bench -->")
	)
	flag.Parse()
	if *cellTime <= 0 || *rounds < 1 || *keys < 1 || *keys > maxClients {
		return fmt.Errorf("time and rounds must be above 0, keys from 1 to %d", maxClients)
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("only: %w", err)
	}
	levels, err := numbers(*goroutines)
	if err != nil {
		return fmt.Errorf("goroutines: %w", err)
	}
	p := plan{workloads: workloads(pattern, levels, *keys), rounds: *rounds, time: *cellTime, progress: os.Stderr}
	if len(p.workloads) == 0 {
		return fmt.Errorf("nothing matches %q with %s goroutines", *only, *goroutines)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server, err := rig.StartRedis()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	machine := fmt.Sprintf("%s; %d rounds, %v a cell", rig.Machine(server.Version(ctx)), *rounds, *cellTime)
	if *keys != maxClients {
		machine += fmt.Sprintf("; %d keys instead of 100,000", *keys)
	}
	results, err := p.run(ctx, server)
	if err != nil {
		return err
	}
	text := markdown(machine, p.workloads, results)
	if *page != "" {
		if err := rig.Rewrite(*page, "bench", text); err != nil {
			return err
		}
	}
	if *inMarkdown {
		_, err = fmt.Print(text)
		return err
	}
	return writeText(os.Stdout, machine, p.workloads, results)
}

func numbers(list string) (all []int, err error) {
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("want numbers such as 1,16, got %q", list)
		}
		all = append(all, n)
	}
	return all, nil
}
