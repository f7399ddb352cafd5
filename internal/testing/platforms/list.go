package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// listed is a package as "go list" describes it: with the files that a platform has of it.
type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	ImportMap  map[string]string
	ForTest    string
	Module     *struct{ Main bool }
}

// own reports whether the package is of this module, and compiled as it is or as its own test needs it.
// Other variants have the same files.
func (p *listed) own() bool {
	if p.Module == nil || !p.Module.Main {
		return false
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	return p.ForTest == "" || path == p.ForTest || path == p.ForTest+"_test"
}

// list returns the packages of the module in a directory, and their tests, each behind what it imports.
func list(dir, system, arch string) (all []*listed, err error) {
	cmd := exec.Command("go", "list", "-test", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,ForTest,Module", "./...")
	cmd.Dir = dir
	// The flags of this run are not for other systems: few have a race detector.
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	for d := json.NewDecoder(bytes.NewReader(output)); ; {
		p := new(listed)
		switch err := d.Decode(p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case !strings.HasSuffix(p.ImportPath, ".test"): // the main package of a test, which go test writes
			all = append(all, p)
		}
	}
}
