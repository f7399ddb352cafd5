package cli_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	// named finds a command in a text, with what it is quoted by, if anything, and the rest of the line.
	named = regexp.MustCompile("(['`\"]?)(?:caddy|%s|\\./caddy) rate-limit ([a-z]+)\\b(.*)")

	// flagged finds the flags in the rest of a command.
	flagged = regexp.MustCompile(`(?:^|[\s\[|(])(--?[a-z][a-z0-9-]*)`)

	// ofPage finds the names and the flags of commands that the page puts together.
	ofPage = regexp.MustCompile(`command: '([a-z]+)'|(?:\[|, |push\()'(--[a-z0-9-]+)'`)
)

// TestNamedCommandsExist: each command that a text of this repository names, with each of its flags, exists.
func TestNamedCommandsExist(t *testing.T) {
	root, found := command(io.Discard), 0
	check := func(where, name string, flags []string) {
		found++
		cmd, _, err := root.Find([]string{name})
		if err != nil || cmd == root {
			if name != "help" && name != "completion" {
				t.Errorf("%s: there is no command %s", where, name)
			}
			return
		}
		for _, flag := range flags {
			if !hasFlag(cmd, flag) {
				t.Errorf("%s: %s has no flag %s", where, name, flag)
			}
		}
	}
	err := filepath.WalkDir("../../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if path != "../../.." && strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"testdata", "bench", "integration"}, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		case strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".txtar"):
			return nil
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			for _, m := range named.FindAllStringSubmatch(line, -1) {
				check(path, m[2], flagsIn(m[1], m[3]))
			}
			if !strings.HasSuffix(path, ".js") {
				continue
			}
			for _, m := range ofPage.FindAllStringSubmatch(line, -1) {
				if m[1] != "" {
					check(path, m[1], nil)
				} else if !slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return hasFlag(c, m[2]) }) {
					t.Errorf("%s: no command has the flag %s", path, m[2])
				}
			}
		}
		return err
	})
	if err != nil || found < 150 {
		t.Errorf("%d commands, %v", found, err)
	}
}

// flagsIn returns the flags of a command in a line, up to its end: the quote before it, or what ends it in a shell.
func flagsIn(quote, rest string) (flags []string) {
	if i := strings.Index(rest, quote); quote != "" && i >= 0 {
		rest = rest[:i]
	}
	rest, _, _ = strings.Cut(rest, "\\n")
	if i := strings.IndexAny(rest, "|;&`#"); i >= 0 {
		rest = rest[:i]
	}
	for _, m := range flagged.FindAllStringSubmatch(rest, -1) {
		flags = append(flags, m[1])
	}
	return flags
}

// hasFlag reports whether a command has a flag, written as -n or --name.
func hasFlag(cmd *cobra.Command, flag string) bool {
	if name, ok := strings.CutPrefix(flag, "--"); ok {
		return name == "help" || cmd.Flag(name) != nil
	}
	return flag == "-h" || len(flag) == 2 && (cmd.Flags().ShorthandLookup(flag[1:]) != nil || cmd.InheritedFlags().ShorthandLookup(flag[1:]) != nil)
}
