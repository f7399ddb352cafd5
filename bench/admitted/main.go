// Command admitted records how many requests two instances admit together in each second, if 800 are offered and 500 may
// pass: if each request asks Redis, with lend, and without Redis for a part of the time. "make pictures" draws it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/picture/recording"
)

func main() {
	if err := record(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-admitted:", err)
		os.Exit(1)
	}
}

// instances is how many instances of Caddy a fleet has.
const instances = 2

func record() (err error) {
	root := flag.String("root", "..", "the root of this repository")
	out := flag.String("out", "", "the file of the recording; empty: the one in the repository")
	seconds := flag.Int("seconds", 60, "how long to record; Redis is away in the middle third")
	warm := flag.Duration("warm", 6*time.Second, "for how long requests come before that, in whole seconds")
	limit, offered := flag.Int64("limit", 500, "requests that may pass in a second"), flag.Int64("offered", 800, "requests that are sent in a second")
	flag.Parse()
	if *seconds < 3 || *limit < instances || *offered < 1 {
		return fmt.Errorf("seconds must be at least 3, limit %d, offered 1", instances)
	}
	if *out == "" {
		*out = filepath.Join(*root, recording.File)
	}
	dir, err := os.MkdirTemp("", "bench-admitted-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary, err := rig.BuildCaddy(*root, dir)
	if err != nil {
		return err
	}
	third := float64(*seconds / 3)
	r := &recording.Recording{Limit: *limit, Offered: *offered, Seconds: *seconds, Down: [2]float64{third + 0.3, 2*third + 0.3}}
	fleets := []*fleet{{name: "each request asks Redis"}, {name: "lend 100ms", lend: "lend 100ms"}, {name: "without Redis", outage: true}}
	for _, f := range fleets {
		if err := f.start(binary, *limit); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.close()) }()
	}
	r.About = rig.Machine(fleets[0].redis.Version(context.Background()))

	// A window begins with a second of the clock.
	began := time.Now().Truncate(time.Second).Add(2*time.Second + *warm)
	var wait sync.WaitGroup
	for _, f := range fleets {
		wait.Go(func() { f.run(began, *warm, r) })
	}
	wait.Wait()
	for _, f := range fleets {
		r.Fleets = append(r.Fleets, f.result())
		err = errors.Join(err, f.err)
	}
	if err != nil {
		return err
	}
	return r.Save(*out)
}
