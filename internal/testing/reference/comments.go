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

// comments are those of fields, by the path of their package, and in it by their type and their name.
var comments = make(map[string]map[string]string)

// comment returns what the source of this module says about a field of a struct.
func comment(of reflect.Type, field string) (string, error) {
	path, ok := strings.CutPrefix(of.PkgPath(), "github.com/seed-161337e5/caddyratelimit")
	if !ok {
		return "", fmt.Errorf("the source of %s is not in this module", of)
	}
	if comments[path] == nil {
		said, err := readPackage(filepath.Join(".", filepath.FromSlash(path)))
		if err != nil {
			return "", err
		}
		comments[path] = said
	}
	return comments[path][of.Name()+"."+field], nil
}

// readPackage reads the comments of the structs in a directory.
func readPackage(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	said := make(map[string]string)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, isType := n.(*ast.TypeSpec)
			if !isType {
				return true
			}
			if t, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range t.Fields.List {
					for _, name := range field.Names {
						said[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
					}
				}
			}
			return false
		})
	}
	return said, err
}
