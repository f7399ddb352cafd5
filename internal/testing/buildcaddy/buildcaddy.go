// Package buildcaddy builds Caddy with this module for the tests that run it.
//
// Linking a Caddy takes six seconds of a core, and many packages need the same one. So it stays in a cache, where
// the go command links it again only if something has changed that it is made of.
package buildcaddy

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/filelock"
)

// unused is after how long a checkout's binaries are removed if no test has asked for them. The same holds for what
// runs have left that were killed.
const unused = 48 * time.Hour

// run is where the binaries of this run are.
var run string

// Main runs the tests of a package with a function, and removes the run's binaries afterwards. It returns the exit
// code.
func Main(tests func() int) int {
	cache, err := cacheDir()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return mainIn(cache, tests)
}

func mainIn(cache string, tests func() int) int {
	if err := makeRun(cache); err != nil {
		fmt.Fprintln(os.Stderr, "making the directory of the binaries:", err)
		return 1
	}
	defer os.RemoveAll(run)
	return tests()
}

func makeRun(cache string) error {
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return err
	}
	if err := sweep(cache, time.Now().Add(-unused)); err != nil {
		return err
	}
	var err error
	run, err = os.MkdirTemp(cache, "run")
	return err
}

// cacheDir is beside what the go command caches.
func cacheDir() (string, error) {
	dir := os.Getenv("GOCACHE")
	if dir == "" {
		var err error
		if dir, err = os.UserCacheDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "caddyratelimit-tests"), nil
}

// sweep removes what is in a directory and has not been used since.
func sweep(dir string, since time.Time) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && info.ModTime().Before(since) {
			err = os.RemoveAll(filepath.Join(dir, entry.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // another run sweeps too
			return err
		}
	}
	return nil
}

// Build builds cmd/caddy below the root of the repository, and returns the path of the binary, which has that name.
// One run builds it at a time. Tests run a link to it, which stays when another run replaces it.
func Build(root, name string, flags ...string) (path string, err error) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	of := strings.Join(append([]string{absolute}, flags...), " ")
	cache := filepath.Join(filepath.Dir(run), fmt.Sprintf("%x", sha256.Sum256([]byte(of)))[:16])
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", err
	}
	now := time.Now()
	if err := os.Chtimes(cache, now, now); err != nil {
		return "", err
	}
	cached := filepath.Join(cache, name)
	lock, err := os.OpenFile(cached+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := filelock.Lock(lock); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return "", err
	}
	if err := compileOnce(absolute, cached, flags); err != nil {
		return "", err
	}
	path = filepath.Join(run, name)
	return path, os.Link(cached, path)
}

// compileOnce compiles unless another package of the same run of make has. RUN_OF_TESTS names it. The go command
// takes two seconds of a core to find that nothing has changed.
func compileOnce(root, path string, flags []string) error {
	note, this := path+".run", os.Getenv("RUN_OF_TESTS")
	if last, err := os.ReadFile(note); this != "" && err == nil && string(last) == this {
		return nil
	}
	if err := compile(root, path, flags); err != nil {
		return err
	}
	return os.WriteFile(note, []byte(this), 0o600)
}

func compile(root, path string, flags []string) error {
	// In a checkout that belongs to another user, go finds no version. No test needs DWARF, and
	// to write it is a third of the linker's work.
	args := append([]string{"build", "-buildvcs=false", "-ldflags=-w", "-o", path}, flags...)
	cmd := exec.Command("go", append(args, "./cmd/caddy")...)
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building Caddy: %w\n%s", err, output)
	}
	return nil
}
