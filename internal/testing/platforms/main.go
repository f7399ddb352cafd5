// Command platforms checks that all packages of this module compile for other systems, tests
// included: it type-checks them from source, which takes a tenth of the time of compiling Caddy for
// each. It reads of dependencies only what they declare.
//
//	go run ./internal/testing/platforms linux/386 linux/arm windows/amd64
package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

func main() {
	files := newSources()
	platforms := os.Args[1:]
	results := make([]func() bool, len(platforms))
	for i, platform := range platforms {
		results[i] = start(files, platform)
	}
	failed := false
	for _, passed := range results {
		failed = !passed() || failed
	}
	if failed {
		os.Exit(1)
	}
}

// cores bounds how many platforms are checked at once: the memory that one needs is freed afterwards.
var cores = make(chan struct{}, runtime.GOMAXPROCS(0))

// start begins to check a platform. The result waits for it, prints what does not compile, and reports whether all does.
func start(files *sources, platform string) (result func() bool) {
	system, arch, ok := strings.Cut(platform, "/")
	if !ok {
		fmt.Fprintf(os.Stderr, "platforms: %q is no platform: give it as linux/386\n", platform)
		os.Exit(2)
	}
	var errs []error
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		cores <- struct{}{}
		defer func() { <-cores }()
		errs, err = check(files, ".", system, arch)
	}()
	return func() bool {
		<-done
		if err != nil {
			errs = []error{err}
		}
		for _, err := range errs {
			fmt.Fprintf(os.Stderr, "%s: %v\n", platform, err)
		}
		return len(errs) == 0
	}
}
