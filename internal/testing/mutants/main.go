// Command mutants takes fixes back, one at a time, and demands that the tests which are named for it fail.
// Arguments are how the names of mutants begin that are run. Without, all are.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// mutants is where they are, from the root of the repository.
const mutants = "internal/testing/mutants/testdata"

// budget is for how long worlds run to find one: some need a world in thousands.
const budget = 5 * time.Minute

func main() {
	simulate := flag.Bool("simulate", false, "find them by worlds alone")
	flag.Parse()
	names := flag.Args()
	if len(names) == 0 {
		names = []string{""}
	}
	missed, ran := 0, 0
	for _, name := range names {
		all, err := load(mutants, name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		for _, m := range all {
			ran++
			began, found := time.Now(), "not tried: "+m.unmet
			if *simulate {
				m.tests, m.pkg = simulation, worlds
			}
			if !*simulate || m.unmet == "" {
				if found, err = m.run("."); err != nil {
					missed++
					found = "NOT FOUND: " + err.Error()
				}
			}
			fmt.Printf("%-40s %5.1f s  %s\n", m.name, time.Since(began).Seconds(), found)
		}
	}
	fmt.Printf("%d mutants, %d missed\n", ran, missed)
	if missed > 0 || ran == 0 {
		os.Exit(1)
	}
}

// deep reports whether a test of a mutant is in the build of make deep alone.
func (m *mutant) deep(root string) bool {
	test := regexp.MustCompile(`^//go:build deep\n(?s:.*)\nfunc (` + m.tests + `)\(`)
	files, _ := filepath.Glob(filepath.Join(root, m.pkg, "*_test.go"))
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && test.Match(text)
	})
}

var (
	// failed is what tests say that fail, or that end the process, because something panics or all wait for each other.
	failed = regexp.MustCompile(`(?m)^\s*--- FAIL: |^panic: |^fatal error: `)
	// broken is what a world says that breaks a promise.
	broken = regexp.MustCompile(`seed \d+: .*`)
)

// run runs the tests of a mutant in a directory. There is an error unless they have failed because of it.
func (m *mutant) run(root string) (found string, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return "", err
	}
	// What rapid leaves would be tried again in each later run, also of other mutants.
	if left := filepath.Join(root, m.pkg, "testdata", "rapid"); !exists(left) {
		defer os.RemoveAll(left)
	}
	args := []string{"test", "-overlay", overlay, "-vet=off", "-count=1", "-failfast", "-timeout=10m", "-run", "^(" + m.tests + ")$", m.pkg}
	if m.deep(root) {
		args = slices.Insert(args, 1, "-tags", "deep")
	}
	test := exec.Command("go", args...)
	test.Dir, test.Env = root, append(os.Environ(), "FIRST=1", fmt.Sprint("MINUTES=", budget.Minutes()))
	out, err := test.CombinedOutput()
	switch said := string(out); {
	case err == nil:
		return "", fmt.Errorf("%s of %s passes", m.tests, m.pkg)
	case !failed.MatchString(said), strings.Contains(said, "[build failed]"):
		return "", fmt.Errorf("the tests did not run: %s", said)
	default:
		return "found " + broken.FindString(said), nil
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// overlay writes the changed files into dir, and returns the file that tells go to take them.
func (m *mutant) overlay(root, dir string) (string, error) {
	files, err := m.apply(root)
	if err != nil {
		return "", err
	}
	replaced := make(map[string]string)
	for file, text := range files {
		from, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		replaced[from] = filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(replaced[from], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}
