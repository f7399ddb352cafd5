//go:build deep

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck: what a platform cannot compile is found, in tests too, and nowhere else.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":       "module example.com/m\n\ngo 1.22\n",
		"a.go":         "package m\n\nimport \"fmt\"\n\nconst Most = 1 << 40\n\nfunc F() { fmt.Println(Most) }\n",
		"a_test.go":    "package m\n\nimport \"syscall\"\n\nvar lock = syscall.Flock\n",
		"x_test.go":    "package m_test\n\nimport (\n\t\"os/exec\"\n\t\"syscall\"\n\n\t\"example.com/m\"\n)\n\nvar _, _, _ = m.F, exec.Command, syscall.Prctl\n",
		"a_windows.go": "package m\n\nvar wide int = Most\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for platform, want := range map[string][]string{
		"linux/amd64":   {"x_test.go"},
		"linux/386":     {"a.go", "x_test.go"},
		"windows/amd64": {"a_test.go", "x_test.go"},
		"windows/386":   {"a.go", "a_test.go", "a_windows.go", "x_test.go"},
	} {
		errs, err := check(dir, platform)
		if err != nil {
			t.Fatal(err)
		}
		if len(errs) != len(want) {
			t.Errorf("%s: %v, want errors in %q", platform, errs, want)
			continue
		}
		for _, name := range want {
			found := false
			for _, err := range errs {
				found = found || strings.Contains(err, string(filepath.Separator)+name+":")
			}
			if !found {
				t.Errorf("%s: %v, want an error in %s", platform, errs, name)
			}
		}
	}
	if _, err := check(dir, "linux/nothing"); err == nil {
		t.Error("an unknown architecture is accepted")
	}
}
