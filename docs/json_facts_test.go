package docs_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/jsondoc"
)

const (
	aZone     = `{"rate_limits":{"z":{"key":"{http.request.header.A}","max_events":10,"window":"1m",@}}}`
	oneBucket = `{"rate_limits":{"z":{"max_events":1000000000000,"window":"1m","algorithm":"token_bucket",@}}}`
	slots     = `{"rate_limits":{"z":{"max_events":1000,"algorithm":"concurrency",@}}}`
)

// within has, for each object of the JSON, a handler with such an object, and for fields that need more than
// that, one for the field. The field replaces @.
var within = map[string]string{
	"handler":            `{"rate_limits":{"z":{"max_events":10,"window":"1m"}},@}`,
	"zone":               aZone,
	"limit":              aZone,
	"plans":              inZone(`"plan":{"of":"{http.request.header.A}","plans":{"a":{"unlimited":true}},@}`),
	"plan":               inZone(`"plan":{"of":"{http.request.header.A}","default":"a","plans":{"a":{@}}}`),
	"cost_request":       inZone(`"cost_request":{"json":["a"],@}`),
	"cost_response":      inZone(`"cost_response":{"json":["a"],@}`),
	"charge_on_response": inZone(`"charge_on_response":{@}`),
	"ban":                inZone(`"ban":{"duration":"1m","after":3,"window":"1m",@}`),
	"adaptive":           slotsOf,
	"priority":           strings.ReplaceAll(slotsOf, "@", `"priority":{"of":"{http.request.header.A}","classes":["a"],@}`),
	"memory":             strings.ReplaceAll(aZone[:len(aZone)-1], ",@", "") + `,"store":{"backend":"memory",@}}`,
	"redis":              strings.ReplaceAll(aZone[:len(aZone)-1], ",@", "") + `,"store":{"backend":"redis",@}}`,

	"zone.ipv4_prefix":        strings.ReplaceAll(aZone, "header.A", "remote.host"),
	"zone.ipv6_prefix":        strings.ReplaceAll(aZone, "header.A", "remote.host"),
	"zone.missing_key_status": inZone(`"missing_key":"reject",@`),
	"zone.cost_broken_off":    inZone(`"cost_header":"Cost",@`),
	"zone.lend":               strings.Replace(aZone[:len(aZone)-1], `"1m"`, `"1h"`, 1) + `,"store":{"backend":"redis"}}`,
	"adaptive.name":           `adaptive_concurrency {"key":"{http.request.remote.host}",@}`,
	"limit.max_events":        inZone(`"algorithm":"fixed_window",@`),
	"limit.window":            inZone(`"algorithm":"fixed_window",@`),
	"limit.burst":             oneBucket,
	"limit.refill":            oneBucket,
	"limit.mode":              strings.Replace(oneBucket, "token_bucket", "leaky_bucket", 1),
	"limit.align":             inZone(`"algorithm":"fixed_window",@`),
	"limit.timezone":          inZone(`"window":"day",@`),
	"limit.lease":             slots,
}

const slotsOf = `adaptive_concurrency {"name":"z","key":"{http.request.remote.host}",@}`

func inZone(text string) string { return strings.Replace(aZone, "@", text, 1) }

// configWith is a handler in which the field has a value.
func configWith(o *jsondoc.Object, f *jsondoc.Field, value string) string {
	if f.Type.Kind() == reflect.Slice && f.Modules == "" && value[0] != '[' {
		value = "[" + value + "]"
	}
	text := cmp.Or(within[o.ID+"."+f.Name], within[o.ID])
	return strings.Replace(text, "@", fmt.Sprintf("%q:%s", f.Name, value), 1)
}

// configWithout is the same handler without the field.
func configWithout(o *jsondoc.Object, f *jsondoc.Field) string {
	text := cmp.Or(within[o.ID+"."+f.Name], within[o.ID])
	return strings.NewReplacer(",@", "", "@", "").Replace(text)
}

// loads returns the error of loading handlers into one config.
func loads(t *testing.T, handlers ...string) error {
	t.Helper()
	ctx := caddytest.Config(t)
	for _, text := range handlers {
		h, err := caddytest.TryLoad(ctx, text)
		if err != nil {
			return err
		}
		defer caddytest.CleanUp(t, h)
	}
	return nil
}

// eachField runs a test for the fields of the JSON.
func eachField(t *testing.T, test func(t *testing.T, o *jsondoc.Object, f *jsondoc.Field)) {
	t.Helper()
	objects, err := jsonDocs().Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		for i := range o.Fields {
			test(t, o, &o.Fields[i])
		}
	}
}

// TestRangesInTheDocs: the bounds of each number are accepted, and what is beyond is not.
func TestRangesInTheDocs(t *testing.T) {
	checked := 0
	one := oneByOne{ctx: caddytest.Config(t)}
	load := func(o *jsondoc.Object, f *jsondoc.Field, value string) error {
		checked++
		_, err := one.load(t, configWith(o, f, quoted(value)))
		return err
	}
	eachField(t, func(t *testing.T, o *jsondoc.Object, f *jsondoc.Field) {
		for _, b := range []struct {
			bound    string
			excluded bool
			beyond   int64
		}{{f.Min, f.AboveMin, -1}, {f.Max, f.BelowMax, 1}} {
			if b.bound == "" {
				continue
			}
			inside, outside := b.bound, beyond(t, b.bound, f.Type, b.beyond)
			if b.excluded {
				inside, outside = "", b.bound
			}
			if inside != "" && inside != "0s" {
				if err := load(o, f, inside); err != nil {
					t.Errorf("%s.%s: %s is in its range: %v", o.ID, f.Name, inside, err)
				}
			}
			if outside != "0" || f.Type.Kind() == reflect.Pointer { // 0 is the default of others
				if load(o, f, outside) == nil {
					t.Errorf("%s.%s: %s is accepted, and the range is %s", o.ID, f.Name, outside, f.Range())
				}
			}
		}
	})
	if checked < 100 {
		t.Errorf("loaded only %d handlers", checked)
	}
}

// beyond is a number that is just below or above a bound.
func beyond(t *testing.T, bound string, of reflect.Type, sign int64) string {
	t.Helper()
	if n, err := strconv.ParseInt(bound, 10, 64); err == nil && !strings.Contains(of.String(), "float") {
		return strconv.FormatInt(n+sign, 10)
	}
	if n, err := strconv.ParseFloat(bound, 64); err == nil {
		return fmt.Sprint(n + float64(sign)*max(n, 1)/1000)
	}
	d, err := caddy.ParseDuration(bound)
	if err != nil {
		t.Fatal(err)
	}
	return (d + time.Duration(sign)*time.Microsecond).String()
}

// quoted is JSON of a number or a text.
func quoted(text string) string {
	if json.Valid([]byte(text)) {
		return text
	}
	return strconv.Quote(text)
}

// TestChoicesInTheDocs: the words that the docs name are those that the error about another word names.
func TestChoicesInTheDocs(t *testing.T) {
	list := regexp.MustCompile(`must be (?:one of )?([^:;]*?)(?:, got.*)?$`)
	found := 0
	one := oneByOne{ctx: caddytest.Config(t)}
	eachField(t, func(t *testing.T, o *jsondoc.Object, f *jsondoc.Field) {
		if f.Choices == nil {
			return
		}
		found++
		_, err := one.load(t, configWith(o, f, `"?"`))
		if err == nil {
			t.Errorf("%s.%s accepts any word", o.ID, f.Name)
			return
		}
		match := list.FindStringSubmatch(err.Error())
		if match == nil {
			t.Errorf("%s.%s: the error names no words: %v", o.ID, f.Name, err)
			return
		}
		words := regexp.MustCompile(`, | or | and `).Split(match[1], -1)
		if slices.Contains(words, "token_bucket") {
			words = append(words, "gcra") // its other name
		}
		slices.Sort(words)
		if want := slices.Sorted(slices.Values(f.Choices)); !slices.Equal(words, want) {
			t.Errorf("%s.%s: the docs name %q, the error %q", o.ID, f.Name, want, words)
		}
	})
	if found < 10 {
		t.Errorf("found only %d fields with choices", found)
	}
}

// seenInUse are the fields whose defaults show only in requests: the tests of their packages have them.
var seenInUse = []string{
	"memory.max_keys", "handler.sweep_interval", "zone.headers", "zone.missing_key", "zone.enforce", "cost_response.unknown", "cost_response.broken_off",
}

// TestDefaultsInTheDocs: a value that the docs call the default is the same as no value.
func TestDefaultsInTheDocs(t *testing.T) {
	checked := 0
	one := oneByOne{ctx: caddytest.Config(t)}
	eachField(t, func(t *testing.T, o *jsondoc.Object, f *jsondoc.Field) {
		literal := f.Literal()
		if literal == "" || within[o.ID] == "" {
			return
		}
		checked++
		name, without := o.ID+"."+f.Name, configWithout(o, f)
		with, differently := configWith(o, f, string(f.DefaultValue())), configWith(o, f, other(f))
		switch {
		case slices.Contains(seenInUse, name):
		case literal == "false" || literal == "0":
			// It is what Go has where there is no value.
		case one.isFilledIn(t, without, with, differently):
		default: // it is part of what zones with the same name must agree on
			if err := loads(t, without, with); err != nil {
				t.Errorf("%s: %s is not the default: %v", name, literal, err)
			}
			if loads(t, without, differently) == nil {
				t.Errorf("%s: nothing shows whether %s is the default", name, literal)
			}
		}
	})
	if checked < 30 {
		t.Errorf("found only %d defaults", checked)
	}
}

// oneByOne loads handlers into one config, which takes less time than a config for each.
type oneByOne struct {
	ctx    caddy.Context
	loaded int
}

// load loads a handler, and returns its JSON then.
func (o *oneByOne) load(t *testing.T, config string) (string, error) {
	t.Helper()
	if strings.Contains(config, `"max_keys"`) { // of which a config has one
		return "", loads(t, config)
	}
	o.loaded++
	const name = `"z"`
	other := fmt.Sprintf(`"z%d"`, o.loaded) // a config remembers the zones
	h, err := caddytest.TryLoad(o.ctx, strings.Replace(config, name, other, 1))
	if err != nil {
		return "", err
	}
	defer caddytest.CleanUp(t, h)
	text, err := json.Marshal(h)
	return strings.Replace(string(text), other, name, 1), err
}

// isFilledIn reports whether a handler without a field is the same as one with its default, once it is loaded.
func (o *oneByOne) isFilledIn(t *testing.T, without, with, differently string) bool {
	t.Helper()
	var texts [3]string
	for i, config := range []string{without, with, differently} {
		var err error
		if texts[i], err = o.load(t, config); err != nil {
			t.Fatalf("%s: %v", config, err)
		}
	}
	return texts[0] == texts[1] && texts[0] != texts[2]
}

// other is JSON of a value that is not the default.
func other(f *jsondoc.Field) string {
	literal := f.Literal()
	if n, err := strconv.Atoi(literal); err == nil {
		if literal == f.Max {
			return strconv.Itoa(n - 1)
		}
		return strconv.Itoa(n + 1)
	}
	if d, err := caddy.ParseDuration(literal); err == nil {
		return strconv.Quote((2 * d).String())
	}
	for _, choice := range f.Choices {
		if choice != literal {
			return strconv.Quote(choice)
		}
	}
	return map[string]string{
		"false": "true", "UTC": `"Europe/Paris"`, "memory": `{"backend":"redis"}`, "booked": `"counted"`,
		"127.0.0.1:6379": `["127.0.0.1:6380"]`, "rl": `"other"`, "default": `"other"`,
	}[literal]
}
