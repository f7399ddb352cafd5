// Package jsondoc documents the JSON of the configuration: it reads the fields of structs by reflection and
// their comments from the source, and writes a page and a JSON schema for editors.
//
// The comments are the only source. Some of their sentences have a fixed form, because the facts of a field
// are read from them:
//
//	Default: 429.                   or "Required." or "`x` (the default)"
//	from 400 to 599                 also "at least 1", "at most 10", "above 0 and at most 100"
//	one of `allow`, `deny` or `local`
//	The number of ..., in percent   the unit of a number, see units
package jsondoc

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Section is an object of the JSON, and a section of the page.
type Section struct {
	ID    string       // the beginning of the anchors of its fields, and the name in the schema
	Title string       // the heading
	Subj  string       // what the section is in its first sentence, in place of the type's name
	At    string       // where the object is in a config: a sentence
	Type  reflect.Type // a struct
	// Inline is the field that names the module, and its value; empty for structs that are no module.
	Inline [2]string
	// Comments are the comments of the fields of a struct that has none in this repository.
	Comments map[string]string
	// Replaced is set if its texts may be placeholders.
	Replaced bool
}

// Value is a type that is no object in JSON.
type Value struct {
	ID, Title, Subj string
	Type            reflect.Type
	Text            map[string]any // the schema of its texts
	Unit            string         // of its numbers, if the comments of fields do not say it
}

// Docs are the objects and values of a configuration.
type Docs struct {
	Sections []Section
	Values   []Value
	Source   Source

	objects []*Object
}

// Object is a section with its fields.
type Object struct {
	Section
	Doc    string
	Fields []Field
	Embeds []*Object // their fields are fields of this object, too

	embedded bool // it is no object of its own
}

// Field is a field of an object.
type Field struct {
	Name    string // in JSON
	Comment string
	Type    reflect.Type
	Modules string // the field that names the module, if this one is a module of Caddy; otherwise empty
	Facts
}

// Objects returns all objects with their fields. Its error names the fields whose comments lack a fact.
func (d *Docs) Objects() ([]*Object, error) {
	if d.objects != nil {
		return d.objects, nil
	}
	byType := make(map[reflect.Type]*Object)
	for _, s := range d.Sections {
		o := &Object{Section: s}
		byType[s.Type] = o
		d.objects = append(d.objects, o)
	}
	var errs []error
	for _, o := range d.objects {
		comments, err := d.Source.of(o.Type)
		if o.Comments != nil {
			comments, err = comment{fields: o.Comments}, nil
		}
		if err != nil {
			return nil, err
		}
		o.Doc = strings.Replace(comments.doc, o.Type.Name()+" ", o.Subj+" ", 1)
		for f := range o.Type.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Anonymous && name == "" && byType[f.Type] != nil:
				o.Embeds = append(o.Embeds, byType[f.Type])
				byType[f.Type].embedded = true
				continue
			case !f.IsExported() || name == "-":
				continue
			}
			_, modules, _ := strings.Cut(f.Tag.Get("caddy"), " inline_key=")
			field := Field{Name: name, Comment: comments.fields[f.Name], Type: f.Type, Modules: modules}
			if field.Facts, err = readFacts(field.Comment, d.scalar(f.Type)); err == nil {
				_, err = d.describe(f.Type)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s.%s: %w", o.Type, f.Name, err))
			}
			o.Fields = append(o.Fields, field)
		}
	}
	return d.objects, errors.Join(errs...)
}

// kind says how a type is written in JSON.
type kind struct {
	text   string         // for the page, perhaps with a link
	schema map[string]any // for the schema
}

const durationType = "caddy.Duration"

// DurationPattern matches the durations that are not negative.
const DurationPattern = `^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h|d))+)$`

// scalar is the type that a field has numbers of: what a pointer points to, or the elements of a list.
func (d *Docs) scalar(t reflect.Type) scalar {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if v := d.value(t); v != nil {
		return scalar{number: true, unit: v.Unit}
	}
	switch {
	case t.String() == durationType:
		return scalar{number: true, unit: durations}
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64, t.Kind() == reflect.Float64:
		return scalar{number: true}
	}
	return scalar{choice: t.Kind() == reflect.String}
}

func (d *Docs) value(t reflect.Type) *Value {
	for i := range d.Values {
		if d.Values[i].Type == t {
			return &d.Values[i]
		}
	}
	return nil
}

func (d *Docs) section(t reflect.Type) *Section {
	for i := range d.Sections {
		if d.Sections[i].Type == t {
			return &d.Sections[i]
		}
	}
	return nil
}

// describe says how a type is written in JSON.
func (d *Docs) describe(t reflect.Type) (k kind, err error) {
	if v := d.value(t); v != nil {
		return kind{text: fmt.Sprintf("[%s](#%s)", v.ID, v.ID)}, nil
	}
	if s := d.section(t); s != nil {
		return kind{fmt.Sprintf("[object](#%s)", anchor(s.Title)), map[string]any{"$ref": "#/definitions/" + s.ID}}, nil
	}
	switch t.String() {
	case durationType:
		return kind{text: "[duration](#duration)"}, nil
	case "caddyhttp.RawMatcherSets":
		return kind{"[matcher sets](#matcher-sets)", map[string]any{
			"type": []string{"array", "null"}, "items": map[string]any{"type": []string{"object", "null"}},
		}}, nil
	case reflect.TypeFor[json.RawMessage]().String():
		return kind{"object", map[string]any{"type": []string{"object", "null"}}}, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return kind{"true or false", map[string]any{"type": "boolean"}}, nil
	case reflect.Int, reflect.Int64:
		return kind{"whole number", map[string]any{"type": "integer"}}, nil
	case reflect.Float64:
		return kind{"number", map[string]any{"type": "number"}}, nil
	case reflect.String:
		return kind{"text", map[string]any{"type": "string"}}, nil
	case reflect.Pointer:
		return d.describe(t.Elem())
	case reflect.Slice:
		k, err = d.describe(t.Elem())
		return kind{"list of " + plural(k.text), map[string]any{"type": []string{"array", "null"}, "items": k.schema}}, err
	case reflect.Map:
		k, err = d.describe(t.Elem())
		return kind{"map to " + plural(k.text), map[string]any{"type": []string{"object", "null"}, "additionalProperties": k.schema}}, err
	}
	return kind{}, fmt.Errorf("no section is about its type %s", t)
}

// anchor is the anchor that a heading has on a page.
func anchor(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Anchor is the anchor of a field on the page.
func (o *Object) Anchor(f *Field) string { return o.ID + "-" + f.Name }

// kindOf is what the page says about the type of a field.
func (d *Docs) kindOf(f *Field) string {
	k, _ := d.describe(f.Type)
	switch {
	case f.Modules != "":
		var links []string
		for _, s := range d.modules(f.Modules) {
			links = append(links, fmt.Sprintf("[%s](#%s)", s.Inline[1], anchor(s.Title)))
		}
		return "object: " + strings.Join(links, ", ")
	case f.Unit != "" && f.Unit != durations && f.Unit != none:
		return k.text + ", " + f.Unit
	}
	return k.text
}

// modules returns the sections that are modules which this field names.
func (d *Docs) modules(inline string) (found []*Section) {
	for i := range d.Sections {
		if d.Sections[i].Inline[0] == inline {
			found = append(found, &d.Sections[i])
		}
	}
	return found
}

// plural is the plural of the text of a kind.
func plural(kind string) string {
	switch {
	case strings.HasPrefix(kind, "list of "):
		return "lists" + kind[len("list"):]
	case strings.HasPrefix(kind, "["):
		return strings.Replace(kind, "]", "s]", 1)
	}
	return kind + "s"
}
