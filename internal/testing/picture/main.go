// Command picture draws docs/algorithms.svg, which shows how each algorithm decides on the same traffic,
// and docs/admitted.svg, which shows how many requests fleets have admitted. The algorithms themselves decide, and the rest was
// recorded.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/picture/recording"
)

//go:generate go run . ../../../docs

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: picture <directory>")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write writes the pictures into a directory.
func write(dir string) error {
	pictures, err := pictures()
	for name, picture := range pictures {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(picture), 0o600))
	}
	return err
}

// pictures returns the pictures, by the name of the file.
func pictures() (map[string]string, error) {
	r, err := recording.Load()
	if err != nil {
		return nil, err
	}
	return map[string]string{"algorithms.svg": draw(traffic(), lanes()), "admitted.svg": drawAdmitted(r)}, nil
}
