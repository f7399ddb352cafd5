package reference

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
)

type object = map[string]any

// Schema writes a JSON schema (draft-07, which most editors know) for configs of Caddy. Of handlers and stores it describes
// those that are given, of the app the struct; the rest of a config may be anything.
func Schema(id, title string, app Object, handlers, stores []Object) ([]byte, error) {
	anything := object{"additionalProperties": object{"$ref": "#/definitions/anything"}, "items": object{"$ref": "#/definitions/anything"}}
	anything = anyOf(handlers, stores, anything)
	apps := object{"type": "object", "properties": object{app.ID: structure(reflect.TypeOf(app.Of), nil)}}
	schema := object{
		"$schema": "http://json-schema.org/draft-07/schema#", "$id": id, "title": title, "definitions": object{"anything": anything},
		"allOf": []any{object{"type": "object", "properties": object{"apps": apps}}, object{"$ref": "#/definitions/anything"}},
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "\t")
	err := e.Encode(schema)
	return b.Bytes(), err
}

// anyOf is the schema of a module that a field names, or else another one.
func anyOf(modules, stores []Object, schema object) object {
	for _, m := range modules {
		name, is := m.Inline[0], object{"const": m.Inline[1]}
		then := structure(reflect.TypeOf(m.Of), stores)
		then["properties"].(object)[name] = is
		condition := object{"type": "object", "properties": object{name: is}, "required": []string{name}}
		schema = object{"if": condition, "then": then, "else": schema}
	}
	return schema
}

// structure is the schema of a struct.
func structure(t reflect.Type, stores []Object) object {
	properties := make(object)
	all, err := rows(t)
	if err != nil {
		panic(err)
	}
	for _, r := range all {
		if r.JSON != "-" {
			properties[r.JSON] = r.schema(r.Type, stores)
			properties[r.JSON].(object)["description"] = r.comment
		}
	}
	return object{
		"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false,
		"patternProperties": object{"^@id$": object{"type": "string"}}, // Caddy's own, for requests to /id/
	}
}

// schema is that of the values of an option.
func (r *row) schema(t reflect.Type, stores []Object) object {
	t = option.Pointed(t)
	_, isValue := reflect.New(t).Interface().(option.Value)
	switch {
	case isValue && len(option.Fields(t)) == 0:
		return object{"anyOf": []any{r.bounded("integer"), object{"type": "string", "minLength": 1}, object{"type": "null"}}}
	case t == reflect.TypeFor[caddy.Duration]():
		return object{"anyOf": []any{object{"type": "string", "minLength": 1}, r.bounded("integer"), object{"const": 0}, object{"type": "null"}}}
	case t == reflect.TypeFor[json.RawMessage]() && r.JSON == "store":
		return anyOf(stores, nil, object{"type": []string{"object", "null"}})
	case t == reflect.TypeFor[json.RawMessage]():
		return object{}
	}
	switch t.Kind() {
	case reflect.Struct:
		return structure(t, nil)
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": r.schema(t.Elem(), stores)}
	case reflect.Slice:
		return object{"type": []string{"array", "null"}, "items": r.schema(t.Elem(), stores)}
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
