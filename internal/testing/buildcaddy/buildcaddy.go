// Package buildcaddy builds Caddy with this module for the tests that run them.
package buildcaddy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// dir is where the binaries of this run are.
var dir string

// Main runs the tests of a package with a function, and removes the binaries afterwards. It returns the exit code.
func Main(tests func() int) int {
	made, err := os.MkdirTemp("", "rlbin")
	if err != nil {
		fmt.Fprintln(os.Stderr, "making the directory of the binaries:", err)
		return 1
	}
	defer os.RemoveAll(made)
	dir = made
	return tests()
}

// Build builds cmd/caddy below the root of the repository, and returns the path of the binary.
func Build(root, name string, flags ...string) (path string, err error) {
	path = filepath.Join(dir, name)
	// In a checkout that belongs to another user, go finds no version. No test needs DWARF, and
	// to write it is a third of the linker's work.
	args := append([]string{"build", "-buildvcs=false", "-ldflags=-w", "-o", path}, flags...)
	cmd := exec.Command("go", append(args, "./cmd/caddy")...)
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building Caddy: %w\n%s", err, output)
	}
	return path, nil
}
