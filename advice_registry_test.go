package caddyratelimit_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

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
}
