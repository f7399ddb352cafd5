package option

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// JSON decodes an object with options, and accepts no other fields. Its errors are about options, and
// not about types of Go. Names that are often written in place of others are in instead.
func JSON(text []byte, to any, instead map[string]string) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s must be %s, got %s", cmp.Or(wrong.Field, "the value"), expected(wrong.Type), article(wrong.Value))
	}
	if err == nil {
		return nil
	}
	name, ok := strings.CutPrefix(err.Error(), `json: unknown field "`)
	if !ok {
		return err
	}
	name = strings.TrimSuffix(name, `"`)
	known := jsonNames(reflect.TypeOf(to))
	switch {
	case instead[name] != "":
		return fmt.Errorf("unknown option %q; write %s", name, instead[name])
	case !slices.Contains(known, name) && wasRemoved(name) != "":
		return errors.New(wasRemoved(name))
	case slices.Contains(known, name): // but not in the inner object
		return fmt.Errorf("unknown option %q", name)
	}
	return fmt.Errorf("unknown option %q%s", name, suggest.Hint(name, known))
}

// expected says which JSON a type of Go is read from.
func expected(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// article returns a kind of JSON value, as encoding/json names it, in words.
func article(value string) string {
	switch kind, number, _ := strings.Cut(value, " "); kind {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "string":
		return "a text"
	case "bool":
		return "true or false"
	case "number":
		return cmp.Or(number, "a number") // it is only given if it does not fit
	default:
		return kind
	}
}

// jsonNames returns the names of the fields of a struct, with those of structs that are embedded.
func jsonNames(t reflect.Type) (names []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			names = append(names, jsonNames(f.Type)...)
		case f.IsExported() && name != "" && name != "-":
			names = append(names, name)
		}
	}
	return names
}
