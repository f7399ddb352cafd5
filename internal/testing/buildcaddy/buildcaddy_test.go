//go:build deep

package buildcaddy

import (
	"os"
	"path/filepath"
	"testing"
)

// module is a repository with a command in cmd/caddy that is quick to build.
func module(t *testing.T, source string) (root string) {
	t.Helper()
	root = t.TempDir()
	write(t, filepath.Join(root, "go.mod"), "module example.com/m\n")
	write(t, filepath.Join(root, "cmd", "caddy", "main.go"), source)
	return root
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// inRun does something in a run of its own, as another test binary would.
func inRun(t *testing.T, cache string, do func()) {
	t.Helper()
	if code := mainIn(cache, func() int { do(); return 0 }); code != 0 {
		t.Fatalf("exit code %d", code)
	}
}

// build builds the Caddy of a module, and returns the binary as the file system knows it.
func build(t *testing.T, root string) (path string, binary os.FileInfo) {
	t.Helper()
	path, err := Build(root, "caddy", "-trimpath")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(path) != "caddy" {
		t.Errorf("the binary is %s, and commands name themselves so", path)
	}
	if binary, err = os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path, binary
}

// TestRunsShareABinary: the second run has the same file as the first, until the source changes. Then a run that has
// the file before keeps it. A run leaves nothing.
func TestRunsShareABinary(t *testing.T) {
	t.Setenv("RUN_OF_TESTS", "")
	cache := filepath.Join(t.TempDir(), "cache")
	root := module(t, "package main\n\nfunc main() {}\n")
	var first os.FileInfo
	inRun(t, cache, func() { _, first = build(t, root) })
	inRun(t, cache, func() {
		path, second := build(t, root)
		if !os.SameFile(first, second) {
			t.Error("the second run has linked again")
		}
		mine := run
		write(t, filepath.Join(root, "cmd", "caddy", "main.go"), "package main\n\nfunc main() { println() }\n")
		inRun(t, cache, func() {
			if _, third := build(t, root); os.SameFile(second, third) {
				t.Error("the third run has the binary of another source")
			}
		})
		run = mine
		if still, err := os.Stat(path); err != nil || !os.SameFile(second, still) {
			t.Errorf("the second run has lost its binary: %v", err)
		}
	})
	if left, err := filepath.Glob(filepath.Join(cache, "run*")); err != nil || len(left) != 0 {
		t.Errorf("runs have left %v, error %v", left, err)
	}
}
