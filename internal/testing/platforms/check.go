package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"sync"
)

// sources are parsed files. Most of them are the same on all platforms.
type sources struct {
	set    *token.FileSet
	mu     sync.Mutex
	parsed map[string]*ast.File
}

func newSources() *sources {
	return &sources{set: token.NewFileSet(), parsed: make(map[string]*ast.File)}
}

// parse returns the file at a path. Without bodies, functions are only declared.
func (s *sources) parse(path string, bodies bool) (*ast.File, error) {
	s.mu.Lock()
	file := s.parsed[path]
	s.mu.Unlock()
	if file != nil {
		return file, nil
	}
	file, err := parser.ParseFile(s.set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if !bodies {
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Body != nil {
				f.Body = &ast.BlockStmt{Lbrace: f.Body.Lbrace, Rbrace: f.Body.Rbrace} // its memory is freed
			}
		}
	}
	s.mu.Lock()
	s.parsed[path] = file
	s.mu.Unlock()
	return file, nil
}

// checker checks the packages of one platform.
type checker struct {
	files *sources
	sizes types.Sizes
	done  map[string]*types.Package
}

// check returns what of the module in a directory does not compile on a platform. It fails if the packages cannot be found.
func check(files *sources, dir, system, arch string) (errs []error, err error) {
	all, err := list(dir, system, arch)
	if err != nil {
		return nil, err
	}
	c := &checker{files: files, sizes: types.SizesFor("gc", arch), done: map[string]*types.Package{"unsafe": types.Unsafe}}
	if c.sizes == nil {
		return nil, fmt.Errorf("there is no architecture %q", arch)
	}
	for _, p := range all {
		if p.ImportPath == "unsafe" {
			continue
		}
		found, err := c.check(p)
		if err != nil {
			return nil, err
		}
		errs = append(errs, found...)
	}
	// A package with tests is checked without them too.
	told := make(map[string]bool)
	return slices.DeleteFunc(errs, func(err error) bool {
		again := told[err.Error()]
		told[err.Error()] = true
		return again
	}), nil
}

// check checks one package, and returns what is wrong with it if it is of this module.
func (c *checker) check(p *listed) (errs []error, err error) {
	own := p.own()
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		file, err := c.files.parse(filepath.Join(p.Dir, name), p.Module != nil && p.Module.Main)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
	}
	config := &types.Config{
		Sizes: c.sizes, IgnoreFuncBodies: !own, FakeImportC: true,
		Importer: importer(func(path string) (*types.Package, error) {
			if mapped := p.ImportMap[path]; mapped != "" {
				path = mapped
			}
			if found := c.done[path]; found != nil {
				return found, nil
			}
			return nil, fmt.Errorf("no package %q", path)
		}),
		Error: func(err error) {
			var told types.Error
			if own && (!errors.As(err, &told) || !told.Soft) {
				errs = append(errs, err)
			}
		},
	}
	c.done[p.ImportPath], _ = config.Check(p.ImportPath, c.files.set, parsed, nil)
	return errs, nil
}

type importer func(path string) (*types.Package, error)

func (i importer) Import(path string) (*types.Package, error) { return i(path) }
