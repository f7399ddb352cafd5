// Program write writes a log of made-up clients to the standard output:
//
//	go run ./internal/testing/samplelog/write -lines 4000 >access.log
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/samplelog"
)

func main() {
	o := samplelog.Options{Start: samplelog.Day}
	flag.IntVar(&o.Lines, "lines", 4000, "how many `lines`")
	flag.IntVar(&o.Clients, "clients", 40, "how many `people` read the site")
	flag.DurationVar(&o.Span, "span", 24*time.Hour, "how long the log is")
	flag.Uint64Var(&o.Seed, "seed", 1, "the seed of all that is random")
	flag.Parse()
	if err := samplelog.Write(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
