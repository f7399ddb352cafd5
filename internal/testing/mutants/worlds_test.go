//go:build deep

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestShrunk: worlds find a script that forgets a state too early. The seed is cut to a few events, and the test in Go
// that is printed then fails alike with the mutant, and passes without. TestShrink of package world is the same without
// mutants and without builds.
func TestShrunk(t *testing.T) {
	t.Parallel()
	all, err := load(filepath.Join(root, mutants), "s-lua-expiry")
	if err != nil || len(all) != 1 {
		t.Fatal(len(all), err)
	}
	w := &worlds{root: root, budget: 2 * time.Minute, dir: t.TempDir()}
	test, scripts, err := w.made(all[0])
	if err != nil {
		t.Fatal(err)
	}
	out, _ := w.run(test, "FIRST=1", scripts, "MINUTES=2")
	found := foundSeed.FindStringSubmatch(out)
	if found == nil {
		t.Fatal(out)
	}
	out, _ = w.run(test, scripts, "SEED="+found[1])
	cut := regexp.MustCompile(`in (\d+) events of (\d+)`).FindStringSubmatch(out)
	source := regexp.MustCompile(`(?s)func (TestFound\d+)\(t \*testing\.T\) {.*?\n {8}}\n`).FindStringSubmatch(out)
	if cut == nil || source == nil {
		t.Fatal(out)
	}
	if n, _ := strconv.Atoi(cut[1]); n > 6 {
		t.Errorf("%s", out)
	}
	overlay := writeTest(t, source[0])
	if said, err := runFound(source[1], overlay, scripts); err == nil || !strings.Contains(said, "--- FAIL: "+source[1]) || !strings.Contains(said, kindOf(found[2])) {
		t.Errorf("with the mutant it does not fail by %q: %v, %s\n%s", found[2], err, said, source[0])
	}
	if said, err := runFound(source[1], overlay, "SCRIPTS="); err != nil || !strings.Contains(said, "--- PASS: "+source[1]) {
		t.Errorf("without the mutant: %v, %s\n%s", err, said, source[0])
	}
}

// kindOf is which promise a violation is about.
func kindOf(violation string) string {
	kind, _, _ := strings.Cut(violation, ": ")
	return kind
}

// writeTest writes a test that a world has printed, and returns the overlay with it.
func writeTest(t *testing.T, source string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(root, worldPackage, "shrunk_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	text, overlay := filepath.Join(t.TempDir(), "shrunk_test.go"), filepath.Join(t.TempDir(), "overlay.json")
	imports := "\"testing\"\n\"time\"\n\n\"github.com/seed-161337e5/caddyratelimit/algorithms\"\n"
	write := func(name, content string) {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text, fmt.Sprintf("package world\nimport (\n%s)\nvar _ = time.Second\n%s", imports, source))
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{file: text}})
	if err != nil {
		t.Fatal(err)
	}
	write(overlay, string(list))
	return overlay
}

func runFound(name, overlay, scripts string) (string, error) {
	c := exec.Command("go", "test", "-tags", "deep", "-overlay", overlay, "-vet=off", "-count=1", "-v", "-run", "^"+name+"$", worldPackage)
	c.Dir, c.Env = root, append(os.Environ(), scripts)
	out, err := c.CombinedOutput()
	return string(out), err
}
