// Command mutants takes fixes back, one at a time, and demands that the tests which are named for it fail.
// Arguments are how the names of mutants begin that are run. Without, all are.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// mutants is where they are, from the root of the repository.
const mutants = "internal/testing/mutants/testdata"

// tags are those of "make deep": it has all tests.
const tags = "deep,nobadger,nomysql,nopgx"

// budget is for how long worlds run to find one: some need a world in thousands.
const budget = 5 * time.Minute

func main() {
	names := os.Args[1:]
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
			began := time.Now()
			found, err := m.run(".")
			if err != nil {
				missed++
				found = "NOT FOUND: " + err.Error()
			}
			fmt.Printf("%-40s %5.1f s  %s\n", m.name, time.Since(began).Seconds(), found)
		}
	}
	fmt.Printf("%d mutants, %d missed\n", ran, missed)
	if missed > 0 || ran == 0 {
		os.Exit(1)
	}
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
	test := exec.Command("go", "test", "-tags", tags, "-overlay", overlay, "-vet=off", "-count=1", "-failfast", "-timeout=10m",
		"-run", "^("+m.tests+")$", m.pkg)
	// What rapid leaves would be tried again in each later run, also of other mutants.
	test.Dir, test.Env = root, append(os.Environ(), "RAPID_NOFAILFILE=true", "FIRST=1", fmt.Sprint("MINUTES=", budget.Minutes()))
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

// mutant takes a fix back. Its file says what the fix is for, which tests find that it is missing, and what to
// change:
//
//	An error of a script keeps its kind.
//	found by TestOne|TestTwo in ./redisstore
//	in lua/lend.lua
//	-a line as it is, and those after it
//	+a line that takes their place
//
// The second line may be "found by simulation": by worlds with fresh seeds.
type mutant struct {
	name       string
	tests, pkg string
	changes    []change
}

// change replaces lines of a file, which it has once.
type change struct{ file, old, text string }

// load reads the mutants of a directory whose names begin with a text.
func load(dir, name string) (all []*mutant, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, name+"*.txt"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		m.name = strings.TrimSuffix(filepath.Base(path), ".txt")
		all = append(all, m)
	}
	return all, nil
}

func parse(text string) (*mutant, error) {
	m := new(mutant)
	for line := range strings.Lines(text) {
		tests, isTests := strings.CutPrefix(line, "found by ")
		file, isFile := strings.CutPrefix(line, "in ")
		switch {
		case isTests:
			if m.tests, m.pkg, _ = strings.Cut(strings.TrimSpace(tests), " in "); m.tests == "simulation" {
				m.tests, m.pkg = "TestSimulate", "./internal/testing/world"
			}
		case isFile:
			m.changes = append(m.changes, change{file: strings.TrimSpace(file)})
		case len(m.changes) == 0: // what it is for
		case line[0] == '-':
			m.changes[len(m.changes)-1].old += line[1:]
		case line[0] == '+':
			m.changes[len(m.changes)-1].text += line[1:]
		default:
			return nil, fmt.Errorf("a line begins with neither - nor +: %q", line)
		}
	}
	if m.tests == "" || m.pkg == "" || len(m.changes) == 0 {
		return nil, fmt.Errorf("it needs tests and a package or simulation, and a change")
	}
	return m, nil
}

// apply returns the files that the mutant changes, as they are then.
func (m *mutant) apply(root string) (map[string]string, error) {
	files := make(map[string]string)
	for _, c := range m.changes {
		text, changed := files[c.file]
		if !changed {
			was, err := os.ReadFile(filepath.Join(root, c.file))
			if err != nil {
				return nil, err
			}
			text = string(was)
		}
		if n := strings.Count("\n"+text, "\n"+c.old); n != 1 || c.old == "" {
			return nil, fmt.Errorf("%s: the lines to change come %d times in %s", m.name, n, c.file)
		}
		text = strings.TrimPrefix(strings.Replace("\n"+text, "\n"+c.old, "\n"+c.text, 1), "\n")
		files[c.file] = text
	}
	return files, nil
}
