package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
)

// comments reads what the source of this module says about the fields of a type, by their names in Go.
func comments(t reflect.Type) (map[string]string, error) {
	path, ok := strings.CutPrefix(t.PkgPath(), "github.com/seed-161337e5/caddyratelimit")
	if !ok {
		return nil, fmt.Errorf("the source of %s is not in this module", t)
	}
	types, err := readPackage(filepath.Join(".", filepath.FromSlash(path)))
	if err != nil || types[t.Name()] == nil {
		return nil, fmt.Errorf("the comments of %s: %w", t, err)
	}
	return types[t.Name()], nil
}

// readPackage reads the comments of the types in a directory.
func readPackage(dir string) (map[string]map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	types := make(map[string]map[string]string)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.TYPE {
				continue
			}
			for _, spec := range gen.Specs {
				named := spec.(*ast.TypeSpec)
				types[named.Name.Name] = readType(named)
			}
		}
	}
	return types, nil
}

func readType(spec *ast.TypeSpec) map[string]string {
	fields := make(map[string]string)
	if t, ok := spec.Type.(*ast.StructType); ok {
		for _, field := range t.Fields.List {
			for _, name := range field.Names {
				fields[name.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
			}
		}
	}
	return fields
}
