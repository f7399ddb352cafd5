package integration_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// binaryDir is the directory of the Caddy binaries of this run.
var binaryDir string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

// run is separate from TestMain because os.Exit runs no deferred calls.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rlbin")
	if err != nil {
		fmt.Fprintln(os.Stderr, "making the directory of the binary:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binaryDir = dir
	return m.Run()
}

// Both build cmd/caddy once, when the first test asks for it, so that -list and runs of other
// tests do not wait for the linker. Commands are built without the race detector: they do one
// thing after the other, and start ten times as fast.
var (
	buildServer  = sync.OnceValues(func() (string, error) { return build("caddy", raceFlags...) })
	buildCommand = sync.OnceValues(func() (string, error) { return build("command") })
)

func build(name string, flags ...string) (path string, err error) {
	if err := watchSources(); err != nil {
		return "", err
	}
	path = filepath.Join(binaryDir, name)
	// In a checkout that belongs to another user, go finds no version.
	args := append([]string{"build", "-buildvcs=false", "-o", path}, flags...)
	cmd := exec.Command("go", append(args, "../cmd/caddy")...)
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building Caddy: %w\n%s", err, output)
	}
	return path, nil
}

// binary returns the path of the Caddy to test.
func binary(t *testing.T) string {
	t.Helper()
	return built(t, buildServer)
}

// commandBinary returns the path of the Caddy for commands.
func commandBinary(t *testing.T) string {
	t.Helper()
	return built(t, buildCommand)
}

func built(t *testing.T, build func() (string, error)) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// watchSources reads the files that the binary is made of. The go command caches the outcome of a
// test until a file changes that the test itself has read, and does not know what a compiler has
// read for the test.
func watchSources() error {
	return filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != ".." && (strings.HasPrefix(name, ".") || name == "integration"):
			return fs.SkipDir
		case slices.Contains([]string{".go", ".lua", ".mod", ".sum"}, filepath.Ext(name)) && !strings.HasSuffix(name, "_test.go"):
			_, err := os.Stat(path)
			return err
		}
		return nil
	})
}
