package jsondoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Schema writes a JSON schema (draft-07, which most editors know) of the objects, for configs of Caddy. Of
// handlers and modules it describes those that are sections; the rest of a config may be anything.
//
// root is the section that is an app of Caddy. Handlers are found wherever they are.
func (d *Docs) Schema(id, title string, root *Section, handlers ...*Section) ([]byte, error) {
	objects, err := d.Objects()
	if err != nil {
		return nil, err
	}
	reference := func(to string) map[string]any { return map[string]any{"$ref": "#/definitions/" + to} }
	anything := map[string]any{"additionalProperties": reference("anything"), "items": reference("anything")}
	for _, handler := range handlers {
		anything = map[string]any{
			"if": map[string]any{
				"type":       "object",
				"properties": map[string]any{handler.Inline[0]: map[string]any{"const": handler.Inline[1]}},
				"required":   []string{handler.Inline[0]},
			},
			"then": reference(handler.ID),
			"else": anything,
		}
	}
	definitions := map[string]any{"anything": anything}
	for _, o := range objects {
		if !o.embedded {
			definitions[o.ID] = d.object(o)
		}
	}
	apps := map[string]any{"type": "object", "properties": map[string]any{root.ID: reference(root.ID)}}
	schema := map[string]any{
		"$schema": "http://json-schema.org/draft-07/schema#", "$id": id, "title": title,
		"allOf": []any{
			map[string]any{"type": "object", "properties": map[string]any{"apps": apps}},
			reference("anything"),
		},
		"definitions": definitions,
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "\t")
	err = e.Encode(schema)
	return b.Bytes(), err
}

// object is the schema of an object.
func (d *Docs) object(o *Object) map[string]any {
	properties := make(map[string]any)
	d.properties(o, properties)
	schema := map[string]any{
		"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false,
		"patternProperties": map[string]any{"^@id$": map[string]any{"type": "string"}}, // Caddy's own, for requests to /id/
	}
	if o.Doc != "" {
		schema["description"] = o.Doc
	}
	if names := o.required(); names != nil {
		schema["required"] = names
	}
	if o.Inline[0] != "" {
		schema["type"] = "object"
		properties[o.Inline[0]] = map[string]any{"const": o.Inline[1]}
	}
	return schema
}

// required are the fields that the object cannot do without, whatever the others are.
func (o *Object) required() (names []string) {
	if o.Inline[0] != "" {
		names = append(names, o.Inline[0])
	}
	for i := range o.Fields {
		if o.Fields[i].Required == "required" {
			names = append(names, o.Fields[i].Name)
		}
	}
	return names
}

func (d *Docs) properties(o *Object, to map[string]any) {
	for _, e := range o.Embeds {
		d.properties(e, to)
	}
	for i := range o.Fields {
		f := &o.Fields[i]
		to[f.Name] = d.property(f)
		if o.Replaced && f.Choices != nil {
			to[f.Name] = map[string]any{"description": f.Comment, "anyOf": []any{
				map[string]any{"enum": f.Choices}, map[string]any{"type": "string", "pattern": `\{.*\}`},
			}}
		}
	}
}

// property is the schema of a field.
func (d *Docs) property(f *Field) map[string]any {
	schema := d.schemaOf(f.Type, &f.Facts)
	if f.Modules != "" {
		schema = d.module(f)
	}
	if schema["$ref"] != nil { // beside it, other keywords are ignored
		schema = map[string]any{"allOf": []any{schema}}
	}
	schema["description"] = f.Comment
	if value := f.DefaultValue(); value != nil {
		schema["default"] = value
	}
	return schema
}

// DefaultValue is the default as JSON has it, or nil if it is no value.
func (f *Field) DefaultValue() json.RawMessage {
	literal := f.Literal()
	text := strconv.Quote(literal)
	switch {
	case literal == "":
		return nil
	case f.Modules != "":
		text = fmt.Sprintf("{%q:%s}", f.Modules, text)
	case f.Type.Kind() == reflect.Slice:
		text = "[" + text + "]"
	case json.Valid([]byte(literal)):
		text = literal
	}
	return json.RawMessage(text)
}

// module is the schema of an object that names its module. Those that are no sections may be anything.
func (d *Docs) module(f *Field) map[string]any {
	var names []string
	var either []any
	for _, s := range d.modules(f.Modules) {
		names = append(names, s.Inline[1])
		named := map[string]any{f.Modules: map[string]any{"const": s.Inline[1]}}
		either = append(either, map[string]any{
			"if":   map[string]any{"type": "object", "properties": named, "required": []string{f.Modules}},
			"then": map[string]any{"$ref": "#/definitions/" + s.ID},
		})
	}
	name := map[string]any{"anyOf": []any{map[string]any{"enum": names}, map[string]any{"type": "string", "minLength": 1}}}
	return map[string]any{
		"type": []string{"object", "null"}, "properties": map[string]any{f.Modules: name}, "required": []string{f.Modules}, "allOf": either,
	}
}

// schemaOf is the schema of a type, within the range and the choices of its field.
func (d *Docs) schemaOf(t reflect.Type, f *Facts) map[string]any {
	nullable := t.Kind() == reflect.Pointer
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if v := d.value(t); v != nil {
		either := []any{f.bounded("integer"), v.Text}
		if v.Unit == durations {
			either = f.durations(v.Text)
		}
		if nullable {
			either = append(either, map[string]any{"type": "null"})
		}
		return map[string]any{"anyOf": either}
	}
	k, _ := d.describe(t)
	schema := maps.Clone(k.schema)
	switch {
	case t.String() == durationType:
		schema = map[string]any{"anyOf": f.durations(map[string]any{"type": "string", "pattern": DurationPattern})}
	case t.Kind() == reflect.Slice && schema["items"] != nil && d.section(t.Elem()) == nil && t.Elem().Kind() != reflect.Map:
		schema["items"] = d.schemaOf(t.Elem(), f)
	case schema["type"] == "integer" || schema["type"] == "number":
		schema = f.bounded(schema["type"].(string))
	case schema["type"] == "string" && f.Choices != nil:
		schema["enum"] = f.Choices
	}
	if name, ok := schema["type"].(string); ok && nullable {
		schema["type"] = []string{name, "null"}
	}
	return schema
}

// bounded is the schema of numbers in the range of a field.
func (f *Facts) bounded(kind string) map[string]any {
	schema := map[string]any{"type": kind}
	for _, b := range []struct {
		text, keyword string
	}{
		{f.Min, map[bool]string{false: "minimum", true: "exclusiveMinimum"}[f.AboveMin]},
		{f.Max, map[bool]string{false: "maximum", true: "exclusiveMaximum"}[f.BelowMax]},
	} {
		if _, err := strconv.ParseFloat(b.text, 64); err == nil {
			schema[b.keyword] = json.RawMessage(b.text)
		}
	}
	return schema
}

// durations are the schemas of a duration: a text, or a number of nanoseconds, where 0 is the default.
func (f *Facts) durations(text map[string]any) []any {
	number := map[string]any{"type": "integer", "minimum": 0}
	for keyword, bound := range map[string]string{"minimum": f.Min, "maximum": f.Max} {
		if d, err := parseDuration(bound); err == nil {
			number[keyword] = d.Nanoseconds()
		}
	}
	return []any{text, number, map[string]any{"const": 0}}
}

// parseDuration parses a duration, also in days.
func parseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}
