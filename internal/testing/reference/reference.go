// Package reference writes what docs/reference.md and the JSON schema say of options: from the tags of structs, which the
// parser reads too, and from the comments of their fields.
package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
)

// Object is a block of options.
type Object struct {
	ID     string    // its name in the marks of the page
	Of     any       // a value of the struct
	Inline [2]string // the field that names the module in JSON, and its value; empty for structs that are no module
}

// row is an option with its comment.
type row struct {
	option.Field
	comment string
}

// rows returns the options of a struct, with those of structs that are embedded in it. Each must have a comment.
func rows(t testing.TB, of reflect.Type) (all []row) {
	t.Helper()
	for _, f := range option.Fields(of) {
		in := of.FieldByIndex(f.Index[:len(f.Index)-1]).Type
		r := row{f, comment(t, in, of.FieldByIndex(f.Index).Name)}
		if r.says() == "" {
			t.Fatalf("%s: the option %s has no comment that says what it does", of, f.Name)
		}
		all = append(all, r)
	}
	return all
}

// Lines writes the syntax of a block.
func (o *Object) Lines(t testing.TB, head string) string {
	t.Helper()
	all, width := rows(t, reflect.TypeOf(o.Of)), 0
	for _, r := range all {
		width = max(width, min(len(r.Name), 16))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "```text\n%s {\n", head)
	for _, r := range all {
		if r.Name != "-" {
			fmt.Fprintf(&b, "\t%s\n", strings.TrimRight(fmt.Sprintf("%-*s %s", width, r.Name, r.arguments()), " "))
		}
	}
	b.WriteString("}\n```\n")
	return b.String()
}

// arguments are those of the line of an option.
func (r *row) arguments() string {
	switch kind := option.Pointed(r.Type); {
	case r.Syntax != "":
		return r.Syntax
	case r.Words != nil:
		return strings.Join(r.Words, "|")
	case kind.Name() == "Duration":
		return "<duration>"
	case kind.Kind() == reflect.Bool:
		return "[true|false]"
	case kind.Kind() == reflect.Int, kind.Kind() == reflect.Int64:
		return "<n>"
	case kind.Kind() == reflect.Struct:
		return "{ ... }"
	}
	return "<text>"
}

// Table writes the options with these names, or those without them.
func (o *Object) Table(t testing.TB, names []string, others bool) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| option | values | default | what it does |\n|---|---|---|---|\n")
	for _, r := range rows(t, reflect.TypeOf(o.Of)) {
		name := r.Name
		if name == "-" {
			name = r.JSON
		}
		if slices.Contains(names, name) == others {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.title(), r.values(), r.usual(), strings.ReplaceAll(r.says(), "|", `\|`))
	}
	return b.String()
}

// title is the name of the option, and that in JSON if it is another one.
func (r *row) title() string {
	switch {
	case r.Name == "-":
		return "JSON: `" + r.JSON + "`"
	case r.JSON == "-" || r.Name == r.JSON:
		return "`" + r.Name + "`"
	}
	return "`" + r.Name + "`, JSON: `" + r.JSON + "`"
}

// values says what the option can be.
func (r *row) values() string {
	text := strings.TrimSpace(strings.TrimPrefix(r.Span(), " of"))
	if text != "" && r.Unit != "" {
		text += " " + r.Unit
	}
	if r.Zero != "" {
		text += ", or `" + r.Zero + "`; in JSON 0"
	}
	if r.Words != nil {
		text = "`" + strings.Join(r.Words, "`, `") + "`"
	}
	return text
}

func (r *row) usual() string {
	text := strings.TrimPrefix(r.Default, "=")
	if text == r.Default && text != "" {
		return "`" + text + "`"
	}
	return text
}

// facts are what other columns say: defaults, bounds and words.
var facts = regexp.MustCompile(` ?(Default: .*?[^.]\.( |$)|Required(, .*?)?\.( |$))| \(the default\)|,? from [0-9]\w* to [0-9]\w*(, and | *)` +
	"|(, at least [0-9]\\w*)|: (one of|either|one or several of) `[^.]*` or `[^`]*`")

// says is the comment without the facts.
func (r *row) says() string {
	text := facts.ReplaceAllStringFunc(r.comment, func(fact string) string {
		switch {
		case strings.HasPrefix(fact, ", from") && strings.HasSuffix(fact, "and "):
			return ", "
		case strings.HasSuffix(fact, " "):
			return " "
		}
		return ""
	})
	return strings.TrimSpace(text)
}

// CheckComments fails the test if the comment of an option leaves out something of its tags: bounds and words.
func (o *Object) CheckComments(t testing.TB) {
	t.Helper()
	for _, r := range rows(t, reflect.TypeOf(o.Of)) {
		for _, text := range append(slices.Clone(r.Words), r.Least, r.Greatest) {
			if text != "0" && !strings.Contains(r.comment, text) {
				t.Errorf("%s: the comment of %s does not say %s", o.ID, r.Name, text)
			}
		}
	}
}

// comments are the comments of fields, by the path of their package, then by their type and name.
var comments = make(map[string]map[string]string)

// comment returns what the source of this module says about a field of a struct.
func comment(t testing.TB, of reflect.Type, field string) string {
	t.Helper()
	path, ok := strings.CutPrefix(of.PkgPath(), "github.com/seed-161337e5/caddyratelimit")
	if !ok {
		t.Fatalf("the source of %s is not in this module", of)
	}
	if comments[path] == nil {
		comments[path] = readPackage(t, filepath.Join(".", filepath.FromSlash(path)))
	}
	return comments[path][of.Name()+"."+field]
}

// readPackage reads the comments of the structs in a directory.
func readPackage(t testing.TB, dir string) map[string]string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	said := make(map[string]string)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
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
	return said
}
