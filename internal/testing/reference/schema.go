package reference

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
)

type object = map[string]any

// Schema writes a JSON schema (draft-07, which most editors know) for configs of Caddy. Of handlers and stores it describes
// those that are given, of the app the struct; the rest of a config may be anything.
func Schema(t testing.TB, id, title string, app Object, handlers, stores []Object) []byte {
	t.Helper()
	anything := object{"additionalProperties": object{"$ref": "#/definitions/anything"}, "items": object{"$ref": "#/definitions/anything"}}
	anything = anyOf(t, handlers, stores, anything)
	apps := object{"type": "object", "properties": object{app.ID: structure(t, reflect.TypeOf(app.Of), nil)}}
	schema := object{
		"$schema": "http://json-schema.org/draft-07/schema#", "$id": id, "title": title, "definitions": object{"anything": anything},
		"allOf": []any{object{"type": "object", "properties": object{"apps": apps}}, object{"$ref": "#/definitions/anything"}},
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "\t")
	if err := e.Encode(schema); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// anyOf is the schema of a module that a field names, or else another one.
func anyOf(t testing.TB, modules, stores []Object, schema object) object {
	for _, m := range modules {
		name, is := m.Inline[0], object{"const": m.Inline[1]}
		then := structure(t, reflect.TypeOf(m.Of), stores)
		then["properties"].(object)[name] = is
		condition := object{"type": "object", "properties": object{name: is}, "required": []string{name}}
		schema = object{"if": condition, "then": then, "else": schema}
	}
	return schema
}

// structure is the schema of a struct.
func structure(t testing.TB, of reflect.Type, stores []Object) object {
	properties := make(object)
	for _, r := range rows(t, of) {
		if r.JSON != "-" {
			schema := r.schema(t, r.Type, stores)
			schema["description"] = r.comment
			properties[r.JSON] = schema
		}
	}
	return object{
		"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false,
		"patternProperties": object{"^@id$": object{"type": "string"}}, // Caddy's own, for requests to /id/
	}
}

// schema is that of the values of an option.
func (r *row) schema(t testing.TB, of reflect.Type, stores []Object) object {
	of = option.Pointed(of)
	_, isValue := reflect.New(of).Interface().(option.Value)
	switch {
	case isValue && len(option.Fields(of)) == 0:
		return object{"anyOf": []any{r.bounded("integer"), object{"type": "string", "minLength": 1}, object{"type": "null"}}}
	case of == reflect.TypeFor[caddy.Duration]():
		return object{"anyOf": []any{object{"type": "string", "minLength": 1}, r.bounded("integer"), object{"const": 0}, object{"type": "null"}}}
	case of == reflect.TypeFor[json.RawMessage]() && r.JSON == "store":
		return anyOf(t, stores, nil, object{"type": []string{"object", "null"}})
	case of == reflect.TypeFor[json.RawMessage]():
		return object{}
	}
	switch of.Kind() {
	case reflect.Struct:
		return structure(t, of, nil)
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": r.schema(t, of.Elem(), stores)}
	case reflect.Slice:
		return object{"type": []string{"array", "null"}, "items": r.schema(t, of.Elem(), stores)}
	case reflect.Bool:
		return object{"type": []string{"boolean", "null"}}
	case reflect.Int, reflect.Int64:
		return r.bounded("integer")
	case reflect.Float64:
		return r.bounded("number")
	case reflect.String:
		if r.Words != nil {
			return object{"enum": r.Words}
		}
		return object{"type": []string{"string", "null"}}
	}
	return object{}
}

// bounded is the schema of numbers within the bounds of the option.
func (r *row) bounded(kind string) object {
	schema := object{"type": kind}
	for keyword, text := range map[string]string{"minimum": r.Least, "maximum": r.Greatest} {
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			schema[keyword] = json.Number(text)
		} else if d, err := option.ParseDuration(text); err == nil {
			schema[keyword] = d.Nanoseconds()
		}
	}
	return schema
}
