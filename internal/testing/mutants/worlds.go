package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// worlds finds mutants by simulation alone: fleets with fresh seeds run until one breaks a promise that it does not
// break without the mutant.
type worlds struct {
	root   string
	budget time.Duration
	dir    string // has the test without a mutant, which is made once
}

const worldPackage = "./internal/testing/world"

func (w *worlds) close() {
	if w.dir != "" {
		_ = os.RemoveAll(w.dir)
	}
}

// build makes the test of worlds, with a mutant or without (nil).
func (w *worlds) build(m *mutant) (test string, err error) {
	test, args := filepath.Join(w.dir, "right"), []string{"test", "-tags", "deep", "-vet=off", "-c"}
	if m != nil {
		test = filepath.Join(w.dir, m.name)
		overlay, err := m.overlay(w.root, w.dir)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	} else if exists(test) {
		return test, nil
	}
	made := exec.Command("go", append(args, "-o", test, worldPackage)...)
	made.Dir = w.root
	if out, err := made.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the test was not made: %s", out)
	}
	return test, nil
}

var foundSeed = regexp.MustCompile(`seed (\d+): (.*)`)

// find runs worlds of a mutant until one breaks a promise, and tells which. A world that ends the process, because all
// wait for each other or something panics, has also found it.
func (w *worlds) find(m *mutant) (string, error) {
	if m.unmet != "" {
		return "not tried: " + m.unmet, nil
	}
	if w.dir == "" {
		dir, err := os.MkdirTemp("", "mutants")
		if err != nil {
			return "", err
		}
		w.dir = dir
	}
	right, err := w.build(nil)
	if err != nil {
		return "", err
	}
	test, err := w.build(m)
	if err != nil {
		return "", err
	}
	defer os.Remove(test)
	began := time.Now()
	for time.Since(began) < w.budget {
		out, err := w.run(test, "FIRST=1", fmt.Sprintf("MINUTES=%f", (w.budget-time.Since(began)).Minutes()))
		if err == nil {
			break
		}
		found := foundSeed.FindStringSubmatch(out)
		if found == nil {
			return fmt.Sprintf("found in %.1f s: %.200s", time.Since(began).Seconds(), firstLine(out, "panic:", "fatal error:")), nil
		}
		took := time.Since(began)
		if _, err := w.run(right, "FIRST=1", "SEED="+found[1]); err == nil {
			return fmt.Sprintf("found in %.1f s, seed %s: %s", took.Seconds(), found[1], found[2]), nil
		}
	}
	return "", errors.New("no world breaks anything")
}

// run runs a test of worlds with some variables.
func (w *worlds) run(test string, variables ...string) (string, error) {
	c := exec.Command(test, "-test.run", "^TestSimulate$", "-test.v", "-test.timeout", "0")
	c.Dir = filepath.Join(w.root, worldPackage)
	c.Env = append(os.Environ(), variables...)
	out, err := c.CombinedOutput()
	return string(out), err
}

func firstLine(text string, prefixes ...string) string {
	for line := range strings.Lines(text) {
		for _, p := range prefixes {
			if strings.HasPrefix(line, p) {
				return strings.TrimSpace(line)
			}
		}
	}
	return text
}
