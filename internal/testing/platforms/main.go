// Command platforms checks that all packages of this module compile for other systems, tests
// included: it type-checks them from source, which takes a tenth of the time of compiling Caddy for
// each. It reads of dependencies only what they declare.
//
//	go run ./internal/testing/platforms linux/386 linux/arm windows/amd64
package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	failed := false
	files := newSources()
	for _, platform := range os.Args[1:] {
		system, arch, ok := strings.Cut(platform, "/")
		if !ok {
			fmt.Fprintf(os.Stderr, "platforms: %q is no platform: give it as linux/386\n", platform)
			os.Exit(2)
		}
		errs, err := check(files, ".", system, arch)
		if err != nil {
			fmt.Fprintf(os.Stderr, "platforms: %s: %v\n", platform, err)
			os.Exit(2)
		}
		for _, err := range errs {
			failed = true
			fmt.Fprintf(os.Stderr, "%s: %v\n", platform, err)
		}
	}
	if failed {
		os.Exit(1)
	}
}
