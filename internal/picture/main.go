// Command picture draws the pictures in docs. In algorithms.svg, which shows how each algorithm
// decides on the same traffic, the algorithms themselves decide. In terminal.svg is what commands have
// printed.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . ../../docs

// pictures returns what the pictures are, by the names of their files.
func pictures() map[string]string {
	return map[string]string{
		"algorithms.svg": draw(traffic(), lanes()),
		"request.svg":    request().draw(),
		"fleet.svg":      fleet().draw(),
		"choose.svg":     tree().draw(),
		"charge.svg":     charge().draw(),
		"terminal.svg":   terminal(recording),
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: picture <directory>")
		os.Exit(2)
	}
	for name, picture := range pictures() {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), []byte(picture), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
