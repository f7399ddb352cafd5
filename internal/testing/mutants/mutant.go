package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutant takes a fix back. Its file says what the fix is for, which tests find that it is missing, and what to
// change:
//
//	An error of a script keeps its kind.
//	found by TestOne|TestTwo in ./redisstore
//	in lua/lend.lua
//	-a line as it is, and those after it
//	+a line that takes their place
//
// The second line may be "found by simulation": by worlds with fresh seeds. There may be another one, "not found by simulation: ",
// with the reason.
type mutant struct {
	name       string
	tests, pkg string
	unmet      string // why worlds do not find it
	changes    []change
}

// What runs worlds: see make simulate.
const simulation, worlds = "TestSimulate", "./internal/testing/world"

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
		reason, isReason := strings.CutPrefix(line, "not found by simulation: ")
		switch {
		case isReason:
			m.unmet = strings.TrimSpace(reason)
		case isTests:
			if m.tests, m.pkg, _ = strings.Cut(strings.TrimSpace(tests), " in "); m.tests == "simulation" {
				m.tests, m.pkg = simulation, worlds
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
