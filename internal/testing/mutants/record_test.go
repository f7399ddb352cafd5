package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTrackRecord: each bug of the track record names tests that exist, or mutants, or says that what it was about is gone.
func TestTrackRecord(t *testing.T) {
	page, err := os.ReadFile("../TRACK-RECORD.md")
	if err != nil {
		t.Fatal(err)
	}
	test, name := regexp.MustCompile("`(Test\\w+)` in `([\\w/.]+)`"), regexp.MustCompile("`([a-z]\\d)` \\|$")
	bugs := 0
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| 2") {
			continue
		}
		bugs++
		cited := test.FindAllStringSubmatch(line, -1)
		for _, c := range cited {
			if !declares(t, filepath.Join("../../..", c[2]), c[1]) {
				t.Errorf("no %s in %s", c[1], c[2])
			}
		}
		if match := name.FindStringSubmatch(line); match != nil {
			if found, err := load("testdata", match[1]+"-"); err != nil || len(found) == 0 {
				t.Errorf("no mutants %s: %v", match[1], err)
			}
		} else if len(cited) == 0 && !strings.HasSuffix(line, "| loans went |") {
			t.Errorf("nothing shows this bug: %s", line)
		}
	}
	if bugs < 30 {
		t.Errorf("found only %d bugs", bugs)
	}
}

// declares reports whether a test file in a directory declares a test.
func declares(t *testing.T, dir, name string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
