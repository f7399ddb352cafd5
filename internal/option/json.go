package option

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// JSON reads the options of a struct from an object, which has no other fields.
func JSON(text []byte, to any) error {
	return object(text, "", reflect.ValueOf(to).Elem())
}

// object reads an object. The prefix names it in errors.
func object(text []byte, prefix string, to reflect.Value) error {
	what := strings.TrimRight(prefix, ". :")
	raw, err := members(text, what)
	if err != nil {
		return err
	}
	fields := Fields(to.Type())
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		f := find(fields, inJSON, name)
		if f == nil {
			return errors.New(unknown(inJSON, what, name, fields))
		}
		if err := f.read(raw[name], prefix, to); err != nil {
			return err
		}
	}
	return nil
}

// members returns the values of an object by their names, which differ. What names the object in errors, if it has a name.
func members(text []byte, what string) (all map[string]json.RawMessage, err error) {
	what = cmp.Or(what, "the value")
	err = json.Unmarshal(text, &all)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil, fmt.Errorf("%s must be an object, got %s", what, wrong.Value)
	}
	d, seen := json.NewDecoder(bytes.NewReader(text)), make(map[json.Token]bool)
	_, _ = d.Token() // where the object begins
	for err == nil && d.More() {
		name, _ := d.Token()
		if seen[name] {
			return nil, fmt.Errorf("%s has %q twice", what, name)
		}
		seen[name] = true
		err = d.Decode(new(json.RawMessage))
	}
	return all, err
}

// read sets the option of a struct from its JSON.
func (f *Field) read(raw json.RawMessage, prefix string, in reflect.Value) error {
	if string(raw) == "null" {
		return nil
	}
	v := f.at(in)
	name, to := prefix+f.JSON, v.Addr().Interface()
	switch {
	case v.Kind() == reflect.Struct && len(Fields(v.Type())) > 0:
		return object(raw, name+".", v)
	case v.Kind() == reflect.Map && v.Type().Elem().Kind() == reflect.Pointer:
		return f.readEach(raw, prefix, v)
	}
	var why error
	if value, ok := to.(Value); ok {
		why = f.readText(raw, value)
	} else if why = json.Unmarshal(raw, to); why == nil {
		why = f.check(v)
	} else if v.Type() == durationType && raw[0] == '"' {
		_, why = ParseDuration(strings.Trim(string(raw), `"`))
	} else {
		why = ErrWrong
	}
	if why == nil {
		return nil
	}
	if _, err := strconv.ParseInt(string(raw), 10, 64); err == nil && f.isTime() {
		why = errNanoseconds
	}
	return f.wrong(name, fmt.Sprintf("%.99s", Shown(string(bytes.Join(bytes.Fields(raw), []byte(" "))))), why)
}

var errNanoseconds = errors.New(`a number in JSON is nanoseconds: write a text with a unit, such as "1m"`)

// isTime reports whether a number in JSON is nanoseconds.
func (f *Field) isTime() bool {
	return Pointed(f.Type) == durationType || strings.HasSuffix(f.Least, "s")
}

// Times returns the names in JSON of the options of a struct whose numbers are nanoseconds.
func Times(of any) (names []string) {
	for _, f := range Fields(reflect.TypeOf(of)) {
		if f.isTime() {
			names = append(names, f.JSON)
		}
	}
	return names
}

// readText sets a value from a text or a number of JSON.
func (f *Field) readText(raw []byte, to Value) error {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		if text = string(raw); strings.Trim(text, "+-.eE0123456789") != "" {
			return ErrWrong
		}
		if f.isTime() {
			text += "ns"
		}
	}
	return to.Parse(strings.Fields(text), f)
}

// Marshal returns text as JSON: a number if it is one.
func Marshal(text string) ([]byte, error) {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return []byte(text), nil
	}
	return json.Marshal(text)
}

// readEach sets the structs of a map from an object of objects.
func (f *Field) readEach(raw json.RawMessage, prefix string, v reflect.Value) error {
	all, err := members(raw, prefix+f.JSON)
	if err != nil {
		return err
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		each := reflect.New(v.Type().Elem().Elem())
		if string(all[name]) != "null" {
			if err := object(all[name], fmt.Sprintf("%s%s %q: ", prefix, f.each(), name), each.Elem()); err != nil {
				return err
			}
		}
		v.SetMapIndex(reflect.ValueOf(name), each)
	}
	return nil
}

// each names one of several values, such as "zone".
func (f *Field) each() string {
	if f.Name != "-" {
		return f.Name
	}
	return strings.TrimSuffix(f.JSON, "s")
}
