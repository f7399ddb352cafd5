// Command picture draws docs/algorithms.svg, which shows how each algorithm decides on the same traffic. The algorithms
// themselves decide.
package main

import (
	"fmt"
	"os"
)

//go:generate go run . ../../../docs/algorithms.svg

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: picture <file>")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(draw(traffic(), lanes())), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
