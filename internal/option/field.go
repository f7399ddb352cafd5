package option

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// Field is an option: what the tags of a field of a struct say of it.
//
//	json       its name in JSON, and in a Caddyfile if caddyfile names no other one; "-" is in no JSON
//	caddyfile  its name in a Caddyfile; "-" is in no Caddyfile
//	syntax     its arguments in a Caddyfile, where its type does not say that
//	range      the least and the greatest value with ".." between them, one of which may be missing
//	unit       what its number counts
//	words      the only texts that it can be, with "|" between them
//	default    its value if it is not given: a value, or in words that begin with "="
//	zero       the word for 0, which is outside of its bounds
//	secret     errors never show its value
//	repeats    a block may have several lines of it
type Field struct {
	Name, JSON      string
	Syntax          string
	Least, Greatest string // empty if there is no bound
	Unit            string
	Words           []string
	Default, Zero   string
	Secret, Repeats bool
	Type            reflect.Type

	index []int
}

// Value is an option whose text is more than a number, a duration or a word.
type Value interface {
	// Parse reads the arguments of a Caddyfile, or the words of a text in JSON. An error says why they are wrong;
	// [ErrWrong] adds nothing.
	Parse(args []string) error

	// Expects says what the arguments must be. The span is that of its number, such as " from 1 to 5".
	Expects(span string) string
}

// Ranged is a value with a number or a duration in it that has bounds.
type Ranged interface {
	// Amount returns the number, and false if it has none that is known.
	Amount() (int64, bool)
}

// Fields returns the options of a struct, with those of structs that are embedded in it.
func Fields(t reflect.Type) (all []Field) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for s := range t.Fields() {
		name, _, _ := strings.Cut(s.Tag.Get("json"), ",")
		if s.Anonymous && name == "" {
			for _, f := range Fields(s.Type) {
				f.index = append([]int{s.Index[0]}, f.index...)
				all = append(all, f)
			}
			continue
		}
		written := cmp.Or(s.Tag.Get("caddyfile"), name)
		if written == "" || name == "-" && written == "-" {
			continue
		}
		f := Field{
			Name: written, JSON: name, Syntax: s.Tag.Get("syntax"), Unit: s.Tag.Get("unit"), Default: s.Tag.Get("default"), Zero: s.Tag.Get("zero"),
			Secret: s.Tag.Get("secret") != "", Repeats: s.Tag.Get("repeats") != "", Type: s.Type, index: s.Index,
		}
		f.Least, f.Greatest, _ = strings.Cut(s.Tag.Get("range"), "..")
		if words := s.Tag.Get("words"); words != "" {
			f.Words = strings.Split(words, "|")
		}
		all = append(all, f)
	}
	return all
}

// name returns the name of the option in a form of the config.
func (f *Field) name(form int) string {
	if form == inJSON {
		return f.JSON
	}
	return f.Name
}

// find returns the option with this name.
func find(fields []Field, form int, name string) *Field {
	i := slices.IndexFunc(fields, func(f Field) bool { return f.name(form) == name })
	if i < 0 || name == "-" {
		return nil
	}
	return &fields[i]
}

// names returns the names of all options, sorted.
func names(fields []Field, form int) (all []string) {
	for _, f := range fields {
		if name := f.name(form); name != "-" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// Names returns the names that the options of a struct have in a Caddyfile, sorted.
func Names(of any) []string {
	return names(Fields(reflect.TypeOf(of)), inCaddyfile)
}

// Span says in words from where to where a value goes, such as " from 1 to 5". It is empty if it has no bounds.
func (f *Field) Span() string {
	switch {
	case f.Least != "" && f.Greatest != "":
		return " from " + f.Least + " to " + f.Greatest
	case f.Least != "":
		return " of at least " + f.Least
	case f.Greatest != "":
		return " of at most " + f.Greatest
	}
	return ""
}

// value is the type of the option without pointers.
func (f *Field) value() reflect.Type {
	t := f.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

var durationType = reflect.TypeFor[caddy.Duration]()

// Expects says what the value must be.
func (f *Field) Expects() string {
	t := f.value()
	if v, ok := reflect.New(t).Interface().(Value); ok {
		return v.Expects(f.Span())
	}
	switch {
	case f.Words != nil && t.Kind() == reflect.Slice:
		return "a list of " + either(f.Words)
	case f.Words != nil:
		return either(f.Words)
	case t == durationType:
		return "a duration" + f.Span()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return "a list of texts"
		}
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number" + f.Span()
	}
	return "a whole number" + f.Span()
}

// either lists words.
func either(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// wrong is the error about a value, which is shown as it was written.
func (f *Field) wrong(name, got, why string) error {
	if f.Secret {
		got = hidden
	}
	if why != "" {
		why = ": " + why
	}
	return fmt.Errorf("%s must be %s, got %s%s", name, f.Expects(), got, why)
}

// parse sets the value from its text in a Caddyfile. It returns why the text is wrong, and false if it is.
func (f *Field) parse(v reflect.Value, text string) (reason string, ok bool) {
	if v.Type() == durationType {
		d, err := ParseDuration(text)
		if err != nil {
			return why(Hint(err))
		}
		v.SetInt(int64(d))
		return f.inRange(v)
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(text == "true")
		return "", text == "true" || text == "false"
	case reflect.String:
		v.SetString(text)
		return f.inRange(v)
	case reflect.Float64:
		n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
		if err != nil || n != n || n-n != 0 { // JSON has neither NaN nor infinity
			return "", false
		}
		v.SetFloat(n)
		return f.inRange(v)
	}
	n, err := strconv.ParseInt(text, 10, v.Type().Bits())
	if err != nil {
		return "", false
	}
	v.SetInt(n)
	return f.inRange(v)
}

// inRange reports whether a value is within its bounds and is one of its words, and what was probably meant if not.
func (f *Field) inRange(v reflect.Value) (why string, ok bool) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "", true
		}
		v = v.Elem()
	}
	if text := v.Kind() == reflect.String; text && f.Words != nil && !slices.Contains(f.Words, v.String()) {
		return strings.TrimPrefix(suggest.Hint(v.String(), f.Words), "; "), false
	}
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String {
		for i := range v.Len() {
			if v.Index(i).String() == "" {
				return "one of its texts is empty", false
			}
			if why, ok := f.inRange(v.Index(i)); !ok {
				return why, false
			}
		}
	}
	n, known := number(v)
	if !known || n == 0 && f.Zero != "" {
		return "", true
	}
	return "", (f.Least == "" || n >= bound(f.Least)) && (f.Greatest == "" || n <= bound(f.Greatest))
}

// number returns the number in a value.
func number(v reflect.Value) (float64, bool) {
	if v.CanAddr() {
		if r, ok := v.Addr().Interface().(Ranged); ok {
			n, known := r.Amount()
			return float64(n), known
		}
	}
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		return float64(v.Int()), true
	case reflect.Float64:
		return v.Float(), true
	}
	return 0, false
}

// bound returns the number of a bound, which may be a duration.
func bound(text string) float64 {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	d, err := caddy.ParseDuration(text)
	if err != nil {
		panic("option: a bound is neither a number nor a duration: " + text)
	}
	return float64(d)
}

// Hint returns the error of [ParseDuration] if it says what was probably meant, and otherwise [ErrWrong].
func Hint(err error) error {
	if _, ok := err.(noUnit); ok || err == nil {
		return err
	}
	return ErrWrong
}

// why returns what an error adds to what is expected.
func why(err error) (text string, ok bool) {
	if err == nil || err == ErrWrong {
		return "", err == nil
	}
	return err.Error(), false
}

// noUnit is the error about a number instead of a duration.
type noUnit string

// Error implements [error].
func (n noUnit) Error() string { return "it has no unit; did you mean " + string(n) + "s?" }

// ParseDuration parses a duration of a config, such as 90s or 1d. The error about a number without a unit
// says what was probably meant.
func ParseDuration(text string) (time.Duration, error) {
	d, err := caddy.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	if _, notNumber := strconv.ParseUint(text, 10, 32); notNumber == nil {
		return 0, noUnit(text)
	}
	return 0, err
}

// Fill sets the options of a struct that are not given and have a value as their default.
func Fill(to any) {
	v := reflect.ValueOf(to).Elem()
	for _, f := range Fields(v.Type()) {
		at := v.FieldByIndex(f.index)
		if !at.IsZero() || f.Default == "" || strings.HasPrefix(f.Default, "=") {
			continue
		}
		if at.Kind() == reflect.Pointer {
			at.Set(reflect.New(at.Type().Elem()))
			at = at.Elem()
		}
		if _, ok := f.set(at, strings.Fields(f.Default)); !ok {
			panic("option: the default of " + f.Name + " is no value of it")
		}
	}
}

// set sets a value from the arguments of a Caddyfile.
func (f *Field) set(v reflect.Value, args []string) (reason string, ok bool) {
	if value, is := v.Addr().Interface().(Value); is {
		if why, ok := why(value.Parse(args)); !ok {
			return why, false
		}
		return f.inRange(v)
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.ValueOf(args).Convert(v.Type()))
		if len(args) == 0 {
			return "", false
		}
		return f.inRange(v)
	}
	switch {
	case f.Zero != "" && (len(args) == 1 && args[0] == f.Zero || len(args) == 0 && f.Syntax[0] == '['):
		v.SetZero()
		return "", true
	case v.Kind() == reflect.Bool && len(args) == 0:
		args = []string{"true"}
	}
	switch {
	case len(args) == 1 && args[0] != "":
		return f.parse(v, args[0])
	case v.Kind() != reflect.String || f.Words != nil:
		return "", false
	case len(args) > 1:
		return "quote it if it has spaces", false
	}
	return "it is empty", false
}

// Nearest returns an error that says which of some words was probably meant, or else [ErrWrong].
func Nearest(word string, words ...string) error {
	if near := suggest.Nearest(word, words); near != "" {
		return fmt.Errorf("did you mean %q?", near)
	}
	return ErrWrong
}
