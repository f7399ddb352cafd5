package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// schemaDocument reads the JSON schema.
func schemaDocument(t *testing.T) map[string]any {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(read(t, jsonSchema)))
	if err != nil {
		t.Fatal(err)
	}
	return document.(map[string]any)
}

func compileSchema(t *testing.T, document any) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource("rate-limit.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("rate-limit.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// goldenConfig is the config of a golden file.
type goldenConfig struct {
	text string
	json any
	err  string // the error of loading it
}

// goldenConfigs returns the configs of the golden cases by their names: those that load, and those that do not.
func goldenConfigs(t *testing.T) (good, bad map[string]goldenConfig) {
	t.Helper()
	good, bad = make(map[string]goldenConfig), make(map[string]goldenConfig)
	decode := func(path, text string) goldenConfig {
		decoded, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return goldenConfig{text: text, json: decoded}
	}
	for _, g := range caddytest.Goldens(t, "testdata/adapt/*.txtar") {
		good[g.String()] = decode(g.String(), string(g.JSON()))
	}
	for _, g := range caddytest.ConfigCases(t, "") {
		config, err := g.JSON()
		if err != nil {
			continue
		}
		c := decode(g.Name, string(config))
		if first, _, _ := strings.Cut(g.Want, " "); first == "ok" {
			good[g.Name] = c
		} else {
			c.err = g.Want
			bad[g.Name] = c
		}
	}
	return good, bad
}

// visible matches the errors about one field alone, which a schema can see: unknown fields, wrong types, unknown
// words, and numbers out of their range.
var visible = regexp.MustCompile(`unknown option "|unknown field|unknown algorithm` +
	`|must be (true or false|a text|a list|an object|a number|a whole number)(,| or|$)` +
	`|must be [a-z0-9_-]+(, [a-z0-9_-]+)* or [a-z0-9_-]+, got` +
	`|must be (from [0-9]+ to [0-9]+|at (least|most) [0-9a-z]+)( percent)?, got -?[0-9.]+$`)

// TestSchema: configs that load are valid, and errors about one field are found.
func TestSchema(t *testing.T) {
	schema := compileSchema(t, schemaDocument(t))
	good, bad := goldenConfigs(t)
	for path, config := range good {
		if err := schema.Validate(config.json); err != nil {
			t.Errorf("%s loads: %v", path, err)
		}
	}
	const least = 45
	found := 0
	for path, config := range bad {
		if !visible.MatchString(config.err) {
			continue
		}
		found++
		if schema.Validate(config.json) == nil {
			t.Errorf("%s is valid, but does not load: %s", path, config.err)
		}
	}
	if found < least {
		t.Errorf("only %d golden cases are about one field, want %d", found, least)
	}
}
