package caddyratelimit_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// secrets are in every secret of the golden cases. No result may have one.
var secrets = []string{"s3cr3t", "hunter2"}

// TestGoldenAdapt: the Caddyfiles of testdata/adapt have this JSON, and it loads.
func TestGoldenAdapt(t *testing.T) {
	for _, g := range caddytest.Goldens(t, "testdata/adapt/*.txtar") {
		t.Run(g.Name, func(t *testing.T) {
			config, warnings, err := caddytest.Adapt(g.Input)
			if err != nil {
				t.Fatal(err)
			}
			for _, warning := range warnings {
				t.Errorf("warning: %s", warning)
			}
			var all any
			if err := json.Unmarshal(config, &all); err != nil {
				t.Fatal(err)
			}
			g.Check(t, pretty(withoutFrame(all), ""))
			if !strings.Contains(g.Input, " /etc/") { // it names files that do not exist here
				if got := caddytest.ValidateJSON(t, config); !strings.HasPrefix(got, "ok") {
					t.Errorf("%s does not load: %s", g, got)
				}
			}
		})
	}
}

// withoutFrame returns the handler of a config that has nothing else, or the config.
func withoutFrame(config any) any {
	var handlers []map[string]any
	eachHandler(config, func(h map[string]any) { handlers = append(handlers, h) })
	if len(handlers) != 1 {
		return config
	}
	handler, err := json.Marshal(handlers[0])
	var again any
	if err == nil {
		err = json.Unmarshal([]byte(strings.Replace(string(caddytest.ConfigOf(string(handler))), ":8080", ":80", 1)), &again)
	}
	if err == nil && reflect.DeepEqual(again, config) {
		return handlers[0]
	}
	return config
}

// eachHandler calls f for each rate_limit handler in a config.
func eachHandler(config any, f func(map[string]any)) {
	switch config := config.(type) {
	case map[string]any:
		if config["handler"] == "rate_limit" {
			f(config)
		}
		for _, value := range config {
			eachHandler(value, f)
		}
	case []any:
		for _, value := range config {
			eachHandler(value, f)
		}
	}
}

// pretty is JSON with as much on a line as fits.
func pretty(value any, indent string) string {
	line, err := json.Marshal(value)
	if err != nil || len(line) <= 100 {
		return string(line)
	}
	var parts []string
	inner, open, end := indent+"\t", "[", "]"
	switch value := value.(type) {
	case map[string]any:
		open, end = "{", "}"
		for _, name := range slices.Sorted(maps.Keys(value)) {
			parts = append(parts, inner+strconv.Quote(name)+": "+pretty(value[name], inner))
		}
	case []any:
		for _, v := range value {
			parts = append(parts, inner+pretty(v, inner))
		}
	default:
		return string(line)
	}
	return open + "\n" + strings.Join(parts, ",\n") + "\n" + indent + end
}

// TestGoldenConfigs: the configs of the table do not load, with this error, or load with these warnings. No result has a
// secret.
func TestGoldenConfigs(t *testing.T) {
	for _, c := range caddytest.ConfigCases(t, "") {
		got := c.Result(t)
		c.Check(t, got)
		for _, secret := range secrets {
			if strings.Contains(got, secret) {
				t.Errorf("%s: the error has a secret: %s", c.Name, got)
			}
		}
	}
}

// FuzzCaddyfile: no block of a zone makes the parser panic, and what it adapts is JSON that can be read.
func FuzzCaddyfile(f *testing.F) {
	for _, c := range caddytest.ConfigCases(f, "") {
		if c.Kind == "zone" {
			f.Add(strings.ReplaceAll(c.Text, "; ", "\n"))
		}
	}
	f.Add("key {client_ip}\nrate 10/1m\nban 1m after 3 refusals in 1m\ncharge {\njson a*4\nbroken_off counted\n}\nplan {header.A} {\na 1/1s\nb {\nevents {header.B} 5\n}\ndefault a\n}")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "import") { // of files
			return
		}
		adapted, _, err := caddytest.Adapt(":80 {\nrate_limit {\nzone z {\n" + text + "\n}\n}\n}\n")
		if err != nil {
			return
		}
		var all any
		if err := json.Unmarshal(adapted, &all); err != nil {
			t.Fatal(err)
		}
		eachHandler(all, func(handler map[string]any) {
			delete(handler, "handler")
			written, err := json.Marshal(handler)
			if err == nil {
				err = json.Unmarshal(written, new(caddyratelimit.Handler))
			}
			if err != nil {
				t.Errorf("%s: %v", written, err)
			}
		})
	})
}

// FuzzZoneJSON: a zone that can be read is written as JSON that is read as the same zone.
func FuzzZoneJSON(f *testing.F) {
	for _, c := range caddytest.ConfigCases(f, "") {
		if c.Kind == "json zone" {
			f.Add("{" + c.Text + "}")
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		z, again := new(config.Zone), new(config.Zone)
		if json.Unmarshal([]byte(text), z) != nil {
			return
		}
		written, err := json.Marshal(z)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := json.Unmarshal(written, again); err != nil {
			t.Fatalf("%s is written as %s: %v", text, written, err)
		}
		if twice, err := json.Marshal(again); err != nil || string(twice) != string(written) {
			t.Errorf("%s is written as\n%s and then as\n%s: %v", text, written, twice, err)
		}
		again.MatcherSetsRaw, again.ExemptRaw, again.BlockRaw = nil, nil, nil
		_, _ = zone.New(again, zone.Place{Name: "z"}, new(stats.Counters)) // may refuse it
	})
}

// within is the object of a block in a handler.
func (b *block) within(handler map[string]any) map[string]any {
	for part := range strings.FieldsSeq(b.path) {
		handler = handler[part].(map[string]any)
	}
	return handler
}

// same expects that a line of a Caddyfile and a value in JSON, unless it is empty, mean the same, and that what is read is written as
// JSON that is read as the same.
func (t *tableTest) same(b *block, f *option.Field, line, value string) {
	t.Helper()
	h, err := t.adapt(strings.Replace(b.frame(f), "?", line, 1))
	if err != nil {
		t.Errorf("%s: %s: %v", b.id, line, err)
		return
	}
	read := func(object any) string {
		into := reflect.New(reflect.TypeOf(b.of)).Interface()
		text, err := json.Marshal(object)
		if err == nil {
			err = option.JSON(text, into)
		}
		if err == nil {
			text, err = json.Marshal(into)
		}
		if err != nil {
			t.Fatalf("%s: %s: %v", b.id, line, err)
		}
		return string(text)
	}
	object := b.within(h)
	delete(object, "handler")
	delete(object, "backend")
	is := read(object)
	if again := read(json.RawMessage(is)); again != is {
		t.Errorf("%s: %s is written as\n%s and then as\n%s", b.id, line, is, again)
	}
	if value == "" {
		return
	}
	other := b.within(t.handler(b, f, f.JSON, value))
	delete(other, "handler")
	delete(other, "backend")
	if in := read(other); in != is {
		t.Errorf("%s: %s is\n%s, and %s in JSON is\n%s", b.id, line, is, value, in)
	}
}
