// Command write writes a log of made-up clients to standard output.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/samplelog"
)

func main() {
	var o samplelog.Options
	flag.IntVar(&o.People, "people", 40, "how many `people` read the site, with about 25 requests each")
	flag.IntVar(&o.Offices, "offices", 0, "how many `addresses` have an office behind them")
	flag.BoolVar(&o.NoCookies, "no-cookies", false, "write no cookies")
	flag.BoolVar(&o.Combined, "combined", false, "write the combined format")
	flag.Parse()
	if err := samplelog.Write(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
