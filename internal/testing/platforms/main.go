// Command platforms checks that all packages of this module compile for other systems, tests
// included: it type-checks them from source, which takes a tenth of the time of compiling Caddy for
// each. It reads of dependencies only what they declare.
//
//	go run ./internal/testing/platforms linux/386 linux/arm windows/amd64
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	failed := false
	for _, platform := range os.Args[1:] {
		wrong, err := check(".", platform)
		if err != nil {
			wrong = []string{err.Error()}
		}
		for _, text := range wrong {
			failed = true
			fmt.Fprintf(os.Stderr, "%s: %s\n", platform, text)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// check returns what of the module in a directory does not compile on a platform. It fails if the packages cannot be found.
func check(dir, platform string) (wrong []string, err error) {
	system, arch, _ := strings.Cut(platform, "/")
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	all, err := packages.Load(&packages.Config{
		Mode: packages.LoadAllSyntax, Dir: dir, Tests: true,
		// The flags of this run are not for other systems: few have a race detector.
		Env: append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS="),
		ParseFile: func(set *token.FileSet, name string, text []byte) (*ast.File, error) {
			file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(name, root) {
				withoutBodies(file)
			}
			return file, err
		},
	}, "./...")
	for _, p := range all {
		for _, e := range p.Errors {
			if !strings.HasSuffix(p.ID, ".test") { // the main package of tests is not of the module
				wrong = append(wrong, e.Error())
			}
		}
	}
	slices.Sort(wrong)
	return slices.Compact(wrong), err // a package with tests is checked without them too
}

// withoutBodies leaves out what functions do, whose memory is freed.
func withoutBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, is := d.(*ast.FuncDecl); is && f.Body != nil {
			f.Body = &ast.BlockStmt{Lbrace: f.Body.Lbrace, Rbrace: f.Body.Rbrace}
		}
	}
}
