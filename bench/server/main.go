// Command server measures a whole Caddy with the directive against the same Caddy
// without it, with wrk, and with Redis on the same machine. See bench/RESULTS.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
)

func main() {
	if err := compare(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-server:", err)
		os.Exit(1)
	}
}

func compare() (err error) {
	var (
		runTime    = flag.Duration("time", 3*time.Second, "how long each run of wrk is, in whole seconds")
		rounds     = flag.Int("rounds", 5, "how many rounds, after one to warm up; the table shows medians")
		only       = flag.String("only", "", "measure only the cases that match (a regular expression)")
		root       = flag.String("root", "..", "the root of this repository")
		inMarkdown = flag.Bool("markdown", false, "print Markdown")
		profiles   = flag.Bool("profile", false, "print which part of a Caddy's CPU samples is the directive's, instead of the comparison")
		top        = flag.Int("top", 12, "with -profile, how many functions of each case are listed")
		page       = flag.String("page", "", "also put the Markdown into this file, between <!-- server --> and <!-- /server -->")
	)
	flag.Parse()
	if *runTime < time.Second || *rounds < 1 {
		return errors.New("time must be at least 1s, rounds at least 1")
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("only: %w", err)
	}
	dir, err := os.MkdirTemp("", "bench-server-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := &bench{rounds: *rounds, time: *runTime, progress: os.Stderr}
	if b.wrk, err = newWrk(dir); err != nil {
		return err
	}
	if b.binary, err = rig.BuildCaddy(*root, dir); err != nil {
		return err
	}

	var outcomes []outcome
	var profiled []profiled
	for i, name := range names() {
		if !pattern.MatchString(name) {
			continue
		}
		err := b.one(ctx, i, func(s scenario) error {
			if *profiles {
				p, err := b.profile(ctx, s)
				profiled = append(profiled, p)
				return err
			}
			o, err := b.measure(ctx, s)
			outcomes = append(outcomes, o)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if *profiles {
		return writeShares(os.Stdout, profiled, *top)
	}
	about := fmt.Sprintf("%s; %d rounds of %v, wrk on the same CPUs; a PING through the proxy took %s longer",
		rig.Machine(b.version), *rounds, *runTime, short(b.trip))
	if *page != "" {
		if err := rig.Rewrite(*page, "server", markdown(about, outcomes)); err != nil {
			return err
		}
	}
	if *inMarkdown {
		_, err = fmt.Print(markdown(about, outcomes))
		return err
	}
	return writeText(os.Stdout, about, outcomes)
}

// one runs a case. It has a Redis of its own, as it has instances of its own: a Redis that has
// served others may be slower.
func (b *bench) one(ctx context.Context, i int, run func(scenario) error) (err error) {
	redis, err := rig.StartRedis()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, redis.Close()) }()
	far, err := delay("unix", redis.Socket, addedRTT)
	if err != nil {
		return err
	}
	defer far.Close()
	if b.version == "" {
		b.version = redis.Version(ctx)
		if b.trip, err = addedTrip(ctx, redis.Address, far.Address()); err != nil {
			return err
		}
	}
	return run(scenarios(redis, far.Address())[i])
}

// names returns the names of the cases.
func names() (all []string) {
	for _, s := range scenarios(&rig.Redis{}, "") {
		all = append(all, s.name)
	}
	return all
}

// addedTrip returns how much longer a PING takes through the proxy.
func addedTrip(ctx context.Context, near, far string) (time.Duration, error) {
	var trips [2]float64
	for i, address := range []string{near, far} {
		client := redis.NewClient(&redis.Options{Addr: address})
		var all []float64
		for range 101 {
			begin := time.Now()
			if err := client.Ping(ctx).Err(); err != nil {
				return 0, errors.Join(err, client.Close())
			}
			all = append(all, float64(time.Since(begin)))
		}
		trips[i] = rig.Median(all)
		if err := client.Close(); err != nil {
			return 0, err
		}
	}
	return time.Duration(trips[1] - trips[0]), nil
}
