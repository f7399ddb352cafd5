package option

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
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
	Index           []int // of its field in the struct
}

// Value is an option whose text is more than a number, a duration or a word. The tag syntax says what it can be.
type Value interface {
	// Parse reads the arguments of a Caddyfile, or the words of a text in JSON. The option knows which numbers and
	// words it can be. An error says why the arguments are wrong; [ErrWrong] adds nothing.
	Parse(args []string, of *Field) error
}

// Fields returns the options of a struct, with those of structs that are embedded in it.
func Fields(t reflect.Type) (all []Field) {
	t = Pointed(t)
	for _, s := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(s.Tag.Get("json"), ",")
		written := cmp.Or(s.Tag.Get("caddyfile"), name)
		if written == "" || name == "-" && written == "-" {
			continue
		}
		f := Field{
			Name: written, JSON: name, Syntax: s.Tag.Get("syntax"), Unit: s.Tag.Get("unit"), Default: s.Tag.Get("default"), Zero: s.Tag.Get("zero"),
			Secret: s.Tag.Get("secret") != "", Repeats: s.Tag.Get("repeats") != "", Type: s.Type, Index: s.Index,
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

// Pointed is a type without pointers.
func Pointed(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

var durationType = reflect.TypeFor[caddy.Duration]()

// kinds say what values of a kind are.
var kinds = map[reflect.Kind]string{
	reflect.Bool: "true or false", reflect.String: "a text", reflect.Struct: "an object",
	reflect.Int: "a whole number", reflect.Int64: "a whole number", reflect.Float64: "a number",
}

// Expects says what the value must be.
func (f *Field) Expects() string {
	t := Pointed(f.Type)
	usual := kinds[t.Kind()]
	if t == durationType {
		usual = "a duration"
	}
	text := cmp.Or(f.Syntax, either(f.Words), usual) + f.Span()
	switch {
	case f.Zero != "":
		return text + ", in JSON 0 for " + f.Zero
	case t == reflect.TypeFor[[]string]():
		return text + ", in JSON a list of texts"
	case t.Kind() == reflect.Slice:
		return text + ", in JSON a list"
	case t.Kind() == reflect.Map:
		return text + ", in JSON an object"
	}
	return text
}

// either lists words.
func either(words []string) string {
	text := strings.Join(words, ", ")
	if last := strings.LastIndex(text, ", "); last >= 0 {
		text = text[:last] + " or " + text[last+2:]
	}
	return text
}

// wrong is the error about a value, which is shown as it was written. An object of JSON may be a matcher with a token.
func (f *Field) wrong(name, got string, why error) error {
	if f.Secret || strings.IndexByte(`'"`, got[0]) < 0 && strings.Contains(got, "{") {
		got = hidden
	}
	text := fmt.Sprintf("%s must be %s, got %s", name, f.Expects(), got)
	if why == ErrWrong {
		return errors.New(text)
	}
	return fmt.Errorf("%s: %w", text, why)
}

// parse sets the value from its text in a Caddyfile.
func (f *Field) parse(v reflect.Value, text string) error {
	if v.Type() == durationType {
		d, err := ParseDuration(text)
		if err != nil {
			return err
		}
		v.SetInt(int64(d))
		return f.check(v)
	}
	switch v.Kind() {
	case reflect.Bool:
		if text != "true" && text != "false" {
			return ErrWrong
		}
		v.SetBool(text == "true")
	case reflect.String:
		v.SetString(text)
	case reflect.Float64:
		digits, percent := strings.CutSuffix(text, "%")
		n, err := strconv.ParseFloat(digits, 64)
		if err != nil || n != n || n-n != 0 { // JSON has neither NaN nor infinity
			return ErrWrong
		}
		if percent && f.Unit != "percent" {
			n /= 100
		}
		v.SetFloat(n)
	default:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return ErrWrong
		}
		v.SetInt(n)
	}
	return f.check(v)
}

// check returns an error for a value that is not within the bounds of the option, or is none of its words.
func (f *Field) check(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		return f.Within(float64(v.Int()))
	case reflect.Float64:
		return f.Within(v.Float())
	case reflect.String:
		return f.Among(v.String())
	case reflect.Slice:
		for i := range v.Len() {
			if text := v.Index(i); text.Kind() == reflect.String && text.Len() == 0 {
				return errors.New("one of its texts is empty")
			} else if err := f.check(text); err != nil {
				return err
			}
		}
	}
	return nil
}

// Within returns an error for a number that is not within the bounds of the option.
func (f *Field) Within(n float64) error {
	if n == 0 && f.Zero != "" || (f.Least == "" || n >= bound(f.Least)) && (f.Greatest == "" || n <= bound(f.Greatest)) {
		return nil
	}
	return ErrWrong
}

// Among returns an error for a word that is none of the option's.
func (f *Field) Among(word string) error {
	if f.Words == nil || slices.Contains(f.Words, word) {
		return nil
	}
	return Nearest(word, f.Words...)
}

// bound returns the number of a bound, which may be a duration.
func bound(text string) float64 {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	d, _ := caddy.ParseDuration(text) // a wrong one is found by the test that tries all bounds
	return float64(d)
}

// ParseDuration parses a duration of a config, such as 90s or 1d. The error about a number without a unit
// says what was probably meant; any other one is [ErrWrong].
func ParseDuration(text string) (time.Duration, error) {
	d, err := caddy.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	if _, notNumber := strconv.ParseUint(text, 10, 32); notNumber == nil {
		return 0, fmt.Errorf("it has no unit: write %[1]ss or %[1]sms", text)
	}
	return 0, ErrWrong
}

// set sets a value from the arguments of a Caddyfile.
func (f *Field) set(v reflect.Value, args []string) error {
	if v.Kind() == reflect.Map && v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	switch to := v.Addr().Interface().(type) {
	case Value:
		return to.Parse(args, f)
	case *http.Header: // with any value if there is none
		if len(args) == 0 || len(args) > 2 {
			return ErrWrong
		}
		to.Add(args[0], append(args, "*")[1])
		return nil
	case *map[string]string:
		if len(args) != 2 || args[1] == "" {
			return ErrWrong
		}
		if (*to)[args[0]] != "" {
			return fmt.Errorf("%s already specified: %s", f.Name, args[0])
		}
		(*to)[args[0]] = args[1]
		return nil
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.ValueOf(args).Convert(v.Type()))
		if len(args) == 0 {
			return ErrWrong
		}
		return f.check(v)
	}
	switch {
	case f.Zero != "" && (len(args) == 1 && args[0] == f.Zero || len(args) == 0 && f.Syntax[0] == '['):
		v.SetZero()
		return nil
	case v.Kind() == reflect.Bool && len(args) == 0:
		args = []string{"true"}
	}
	switch {
	case len(args) == 1 && args[0] != "":
		return f.parse(v, args[0])
	case v.Kind() != reflect.String || f.Words != nil:
		return ErrWrong
	case len(args) > 1:
		return errors.New("quote it if it has spaces")
	}
	return errors.New("it is empty")
}

// Nearest returns an error that says which of some words was probably meant, or else [ErrWrong].
func Nearest(word string, words ...string) error {
	if near := suggest.Nearest(word, words); near != "" {
		return fmt.Errorf("did you mean %q?", near)
	}
	return ErrWrong
}
