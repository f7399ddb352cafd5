// Package option reads the options of a struct from a block of a Caddyfile or from JSON. The tags of its fields say
// what an option can be: see [Field].
package option

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// ErrWrong is the error of a [Value] that is wrong for no other reason than what it expects says.
var ErrWrong = errors.New("it is none")

// Lines are options of a block that are more than a value, by name. They parse what is behind their name.
type Lines map[string]func() error

// Block reads the options of a struct from a block. What names the block in errors. Options with a line are read by it,
// and a line of another name says where that belongs.
func Block(d *caddyfile.Dispenser, what string, to any, lines Lines) error {
	if d.NextArg() { // which may be a password that belongs into the block
		return d.Errf("%s: write its options in a block { ... }", what)
	}
	v := reflect.ValueOf(to).Elem()
	fields := Fields(v.Type())
	seen := make(map[string]bool)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		f := find(fields, inCaddyfile, name)
		switch {
		case f == nil && lines[name] != nil:
			return lines[name]()
		case f == nil:
			return d.Err(unknown(inCaddyfile, what, name, fields))
		case seen[name] && !f.Repeats, f.given(v):
			return d.Errf("%s: %s already specified", what, name)
		}
		seen[name] = true
		if err := f.line(d, what, v, lines[name]); err != nil {
			return err
		}
	}
	return nil
}

// line reads the line of an option, whose name was read.
func (f *Field) line(d *caddyfile.Dispenser, what string, in reflect.Value, parse func() error) error {
	if parse != nil {
		return parse()
	}
	at := f.at(in)
	switch to := at.Addr().Interface().(type) {
	case Value:
	case caddyfile.Unmarshaler:
		return to.UnmarshalCaddyfile(d)
	default:
		if at.Kind() != reflect.Struct {
			break
		}
		return Block(d, what+" "+f.Name, to, nil)
	}
	if err := f.assign(at, d.RemainingArgs()); err != nil {
		return d.WrapErr(err)
	}
	if OpensBlock(d) {
		return d.Errf("%s takes no block", f.Name)
	}
	return nil
}

// Set sets an option, which there is, from its arguments, outside of a block.
func Set(to any, name string, args []string) error {
	v := reflect.ValueOf(to).Elem()
	f := find(Fields(v.Type()), inCaddyfile, name)
	if f.given(v) {
		return fmt.Errorf("%s already specified", name)
	}
	return f.assign(f.at(v), args)
}

// given reports whether the option has a value, and can have no other one.
func (f *Field) given(in reflect.Value) bool {
	return !f.Repeats && !in.FieldByIndex(f.Index).IsZero()
}

// at returns the value of the option in a struct, where a pointer points to.
func (f *Field) at(in reflect.Value) reflect.Value {
	v := in.FieldByIndex(f.Index)
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	return v
}

// assign sets the value from its arguments.
func (f *Field) assign(v reflect.Value, args []string) error {
	why := f.set(v, args)
	switch {
	case why == nil:
		return nil
	case len(args) == 0:
		return fmt.Errorf("%s must be %s, got nothing: is a variable of the environment empty?", f.Name, f.Expects())
	}
	return f.wrong(f.Name, "'"+Shown(strings.Join(args, " "))+"'", why)
}

// Fill sets the options of a struct that are not given and have a value as their default.
func Fill(to any) {
	v := reflect.ValueOf(to).Elem()
	for _, f := range Fields(v.Type()) {
		if !v.FieldByIndex(f.Index).IsZero() || f.Default == "" || strings.HasPrefix(f.Default, "=") {
			continue
		}
		if err := f.set(f.at(v), strings.Fields(f.Default)); err != nil {
			panic("option: the default of " + f.Name + " is no value of it")
		}
	}
}

// Inherit sets the options of a struct that are not given as another one has them.
func Inherit(to, from any) {
	v, other := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for _, f := range Fields(v.Type()) {
		if at := v.FieldByIndex(f.Index); at.IsZero() && at.CanSet() {
			at.Set(other.FieldByIndex(f.Index))
		}
	}
}

// unknown is the error about an option that a block or an object does not have. What names that, if it has a name.
func unknown(form int, what, name string, fields []Field) string {
	if what != "" {
		what += ": "
	}
	if text := instead(form, name); text != "" {
		return what + text
	}
	known := names(fields, form)
	return fmt.Sprintf("%sunknown option %q%s", what, Shown(name), cmp.Or(suggest.Hint(name, known), "; must be one of "+strings.Join(known, ", ")))
}

const hidden = "(hidden)"

// Shown returns a text in the form in which errors may show it. It is hidden if it may contain a
// password, as in redis://user:password@host.
func Shown(text string) string {
	if strings.Index(text, "@") > 0 || strings.Contains(text, "://") {
		return hidden
	}
	return text
}

// OpensBlock reports whether the next token opens a block, without consuming it.
func OpensBlock(d *caddyfile.Dispenser) bool {
	if !d.Next() {
		return false
	}
	defer d.Prev()
	return d.Val() == "{"
}
