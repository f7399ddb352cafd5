package world

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Source is a test in Go that fails as long as the plan breaks something, for found_test.go.
func (p *Plan) Source(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "func %s(t *testing.T) {\n\tp := &Plan{\n", name)
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.IsZero():
		case f.Kind() == reflect.Slice:
			fmt.Fprintf(&b, "\t\t%s: []%s{\n", v.Type().Field(i).Name, f.Type().Elem().Name())
			for n := range f.Len() {
				fmt.Fprintf(&b, "\t\t\t%s,\n", strings.TrimPrefix(literal(f.Index(n)), f.Type().Elem().Name()))
			}
			b.WriteString("\t\t},\n")
		default:
			fmt.Fprintf(&b, "\t\t%s: %s,\n", v.Type().Field(i).Name, literal(f))
		}
	}
	b.WriteString("\t}\n\tfor _, violation := range Check(Run(t, p)) {\n\t\tt.Error(violation)\n\t}\n}\n")
	return b.String()
}

// literal is a value as Go has it in its source: numbers, texts, times, and structs of these. Kinds of events are
// constants of the same name.
func literal(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return goDuration(x)
	case Kind:
		return string(x)
	}
	switch v.Kind() {
	case reflect.String:
		return strconv.Quote(v.String())
	case reflect.Struct:
		var fields []string
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				fields = append(fields, v.Type().Field(i).Name+": "+literal(v.Field(i)))
			}
		}
		name := v.Type().String()
		return strings.TrimPrefix(name, "world.") + "{" + strings.Join(fields, ", ") + "}"
	}
	return fmt.Sprint(v.Interface())
}

// goDuration is a time in the largest unit of which it is a whole number.
func goDuration(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{
		{time.Hour, "time.Hour"},
		{time.Minute, "time.Minute"},
		{time.Second, "time.Second"},
		{time.Millisecond, "time.Millisecond"},
		{time.Microsecond, "time.Microsecond"},
	} {
		switch n := d / unit.length; {
		case d == unit.length:
			return unit.name
		case n != 0 && d%unit.length == 0:
			return fmt.Sprintf("%d * %s", n, unit.name)
		}
	}
	return strconv.FormatInt(int64(d), 10)
}
