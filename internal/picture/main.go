// Command picture draws the pictures in docs. In algorithms.svg, which shows how each algorithm
// decides on the same traffic, the algorithms themselves decide. In terminal.svg is what commands have
// printed, and in dashboard.svg where the panels of the dashboard are.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . ../../docs

// pictures returns what the pictures are, by the names of their files.
func pictures() (map[string]string, error) {
	dashboard, err := plan()
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"algorithms.svg": draw(traffic(), lanes()),
		"request.svg":    request().draw(),
		"fleet.svg":      fleet().draw(),
		"choose.svg":     tree().draw(),
		"charge.svg":     charge().draw(),
		"dashboard.svg":  dashboard.draw(),
		"terminal.svg":   terminal(recording),
	}, nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: picture <directory>")
		os.Exit(2)
	}
	all, err := pictures()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for name, picture := range all {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), []byte(picture), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
