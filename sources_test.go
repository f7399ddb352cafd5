package caddyratelimit_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
)

// spare is how many lines a budget may leave. A package that has become smaller keeps what was won.
const spare = 100

// TestBudgets: no package has more lines or kilobytes of code than its budget in the table of layers, and no budget is much larger than
// its package. To raise one is a decision, which the commit explains.
func TestBudgets(t *testing.T) {
	for _, l := range layers {
		lines, bytes := codeOf(t, l.name)
		if kB := (bytes + 999) / 1000; lines > l.lines || kB > l.kB {
			t.Errorf("%s has %d lines and %d kB of code, and its budget is %d and %d", l.name, lines, kB, l.lines, l.kB)
		} else if lines <= l.lines-spare {
			t.Errorf("%s has %d lines of code: lower its budget of %d", l.name, lines, l.lines)
		}
	}
}

// codeOf returns the lines of a package that are neither empty nor comments, and their bytes: Go without tests, Lua, and what browsers get.
func codeOf(t *testing.T, pkg string) (lines, bytes int) {
	t.Helper()
	for _, pattern := range []string{"*.go", "*.lua", "static/*.js", "static/*.css", "static/*.html"} {
		files, err := filepath.Glob(filepath.Join(pkg, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if isCode(filepath.Ext(file), strings.TrimSpace(line)) {
					lines, bytes = lines+1, bytes+len(line)
				}
			}
		}
	}
	return lines, bytes
}

func isCode(kind, line string) bool {
	comment := map[string]string{".go": "//", ".js": "//", ".lua": "--", ".css": "/*", ".html": "<!--"}[kind]
	return line != "" && (!strings.HasPrefix(line, comment) || strings.HasPrefix(line, "--[["))
}

// tellsWhatToDo matches texts that say what to do, by the verbs of the advice that there is.
var tellsWhatToDo = regexp.MustCompile(`(^|[;:,.] )(?i:set|write|use|give|raise|lower|add|put|remove|correct|choose|match|check|leave|name|narrow|map|look a|see the|see that|let the|have it|did you mean)\b`)

// TestAdviceIsRegistered: what the log says is to be done is advice of the registry, so that no text of it is
// without a set-up in [TestAdviceIsGood]. Doctor and the command line take nothing but such advice, by its type.
func TestAdviceIsRegistered(t *testing.T) {
	found := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != "." || slices.Contains([]string{"bench", "examples", "tools", "integration", "testing"}, entry.Name())):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			logged, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Warn", "Error", "Info"}, logged.Sel.Name) {
				return true
			}
			found++
			ast.Inspect(call, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if text, err := strconv.Unquote(literal.Value); err == nil && tellsWhatToDo.MatchString(text) {
						t.Errorf("%s: %q is no advice of internal/advice", files.Position(literal.Pos()), text)
					}
				}
				return true
			})
			return true
		})
		return nil
	})
	if err != nil || found < 20 {
		t.Errorf("%d calls, %v", found, err)
	}
	for _, a := range advice.All() { // each has a beginning of its own
		if text := a.With(1, 2, 3, 4).String(); advice.Of(text) != a {
			t.Errorf("%q is taken for %s", text, advice.Of(text).Name())
		}
	}
}
