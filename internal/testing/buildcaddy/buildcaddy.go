// Package buildcaddy builds Caddy with this module for the tests that run it.
package buildcaddy

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Build builds cmd/caddy below the root of the repository, and returns the path of the binary. It is in the cache of the
// go command, which links it again only if its parts have changed. Linking a Caddy takes six seconds of a core.
func Build(root string, flags ...string) (path string, err error) {
	// In a checkout that belongs to another user, go finds no version. No test needs DWARF, and
	// to write it is a third of the linker's work.
	args := append([]string{"run", "-buildvcs=false", "-ldflags=-w", "-exec", "echo"}, flags...)
	for range 2 { // what was linked just now is somewhere else, and gone
		var complaint bytes.Buffer
		cmd := exec.Command("go", append(args, "./cmd/caddy")...)
		cmd.Dir, cmd.Stderr = root, &complaint
		output, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("building Caddy: %w\n%s", err, complaint.Bytes())
		}
		path = strings.TrimSpace(string(output))
		if _, err = os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("the go command does not keep the Caddy that it has linked: there is no %s", path)
}
