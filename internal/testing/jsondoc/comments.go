package jsondoc

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
)

// Source is where the source of a module is.
type Source struct {
	Module, Dir string

	packages map[string]map[string]comment // by package, and by type
}

// comment is what the source says about a type.
type comment struct {
	doc    string
	fields map[string]string
}

// of returns the comments of a type.
func (s *Source) of(t reflect.Type) (comment, error) {
	path, ok := strings.CutPrefix(t.PkgPath(), s.Module)
	if !ok {
		return comment{}, fmt.Errorf("the source of %s is not in %s", t, s.Module)
	}
	if s.packages == nil {
		s.packages = make(map[string]map[string]comment)
	}
	types := s.packages[path]
	if types == nil {
		var err error
		if types, err = readPackage(filepath.Join(s.Dir, filepath.FromSlash(path))); err != nil {
			return comment{}, err
		}
		s.packages[path] = types
	}
	found, ok := types[t.Name()]
	if !ok {
		return comment{}, fmt.Errorf("the type %s is not in its package", t)
	}
	return found, nil
}

// readPackage reads the comments of the types in a directory.
func readPackage(dir string) (map[string]comment, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	types := make(map[string]comment)
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
				types[named.Name.Name] = readType(gen.Doc, named)
			}
		}
	}
	return types, nil
}

func readType(doc *ast.CommentGroup, spec *ast.TypeSpec) comment {
	c := comment{doc: paragraphs(doc.Text()), fields: make(map[string]string)}
	if t, ok := spec.Type.(*ast.StructType); ok {
		for _, field := range t.Fields.List {
			for _, name := range field.Names {
				c.fields[name.Name] = strings.ReplaceAll(paragraphs(field.Doc.Text()), "\n\n", " ")
			}
		}
	}
	return c
}

// paragraphs joins the lines of each paragraph.
func paragraphs(text string) string {
	parts := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, part := range parts {
		parts[i] = strings.Join(strings.Fields(part), " ")
	}
	return strings.Join(parts, "\n\n")
}
