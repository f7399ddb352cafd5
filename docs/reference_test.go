package docs_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/seed-161337e5/caddyratelimit"
	"github.com/seed-161337e5/caddyratelimit/adaptive"
	"github.com/seed-161337e5/caddyratelimit/backend"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/reference"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
)

const (
	page       = "docs/reference.md"
	jsonSchema = "docs/rate-limit.schema.json"
)

// objects are the blocks of options.
var objects = []reference.Object{
	{ID: "handler", Of: caddyratelimit.Handler{}, Inline: [2]string{"handler", "rate_limit"}},
	{ID: "zone", Of: config.Zone{}},
	{ID: "plans", Of: config.Plans{}},
	{ID: "plan", Of: config.Plan{}},
	{ID: "charge", Of: config.Charge{}},
	{ID: "ban", Of: config.Ban{}},
	{ID: "memory", Of: backend.MemoryStore{}, Inline: [2]string{"backend", "memory"}},
	{ID: "redis", Of: backend.RedisStore{}, Inline: [2]string{"backend", "redis"}},
	{ID: "tls", Of: redisstore.TLS{}},
	{ID: "adaptive", Of: adaptive.Handler{}, Inline: [2]string{"handler", "adaptive_concurrency"}},
	{ID: "rate_limit", Of: caddyratelimit.App{}},
}

func objectOf(t *testing.T, id string) *reference.Object {
	t.Helper()
	i := slices.IndexFunc(objects, func(o reference.Object) bool { return o.ID == id })
	if i < 0 {
		t.Fatalf("%s: no block of options is called %q", page, id)
	}
	return &objects[i]
}

// TestReference: the blocks and tables of the page, and the schema, are what the tags and comments of the structs say.
func TestReference(t *testing.T) {
	var b strings.Builder
	shown := make(map[string][]string)
	rest := read(t, page)
	for {
		before, after, found := strings.Cut(rest, "<!-- ")
		b.WriteString(before)
		if !found {
			break
		}
		mark, body, _ := strings.Cut(after, " -->\n")
		_, behind, ends := strings.Cut(body, "<!-- end -->\n")
		words := strings.Fields(mark)
		if !ends || len(words) < 2 {
			t.Fatalf("%s: the mark %q has no end", page, mark)
		}
		text := ""
		switch o, names := objectOf(t, words[1]), words[2:]; {
		case words[0] == "lines:":
			text = o.Lines(t, strings.Join(names, " "))
		case names[0] == "rest":
			text = o.Table(t, shown[words[1]], true)
		default:
			shown[words[1]] = names
			text = o.Table(t, names, false)
		}
		b.WriteString("<!-- " + mark + " -->\n" + text + "<!-- end -->\n")
		rest = behind
	}
	generated(t, page, []byte(b.String()))
	schema := reference.Schema(t, "https://raw.githubusercontent.com/seed-161337e5/caddyratelimit/main/"+jsonSchema, "Configs of Caddy with rate_limit",
		*objectOf(t, "rate_limit"), []reference.Object{*objectOf(t, "handler"), *objectOf(t, "adaptive")}, []reference.Object{*objectOf(t, "memory"), *objectOf(t, "redis")})
	generated(t, jsonSchema, schema)
	for i := range objects {
		objects[i].CheckComments(t)
	}
}

// generated compares a file with what it should be, or writes it with UPDATE_DOCS=1.
func generated(t *testing.T, file string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(filepath.FromSlash(file))
	switch {
	case err == nil && bytes.Equal(got, want):
	case os.Getenv("UPDATE_DOCS") != "":
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Error(err)
		}
	default:
		t.Errorf("%s is not what the code says (%v): write it with make docs", file, err)
	}
}

// TestSchema: configs that load are valid, and those with a wrong field are not.
func TestSchema(t *testing.T) {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(read(t, jsonSchema)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("rate-limit.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("rate-limit.json")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(name, text string) error {
		decoded, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return schema.Validate(decoded)
	}
	for _, g := range caddytest.Goldens(t, "testdata/adapt/*.txtar") {
		if err := valid(g.String(), string(g.JSON())); err != nil {
			t.Errorf("%s loads: %v", g, err)
		}
	}
	for _, zone := range []string{`"windw": "1m"`, `"max_events": -1`, `"ipv6_prefix": 129`, `"refill": "sometimes"`, `"overrides": "yes"`, `"window": []`, `"ban": {"after": "3"}`, `"lend": 5`} {
		if valid(zone, `{"handler": "rate_limit", "rate_limits": {"z": {`+zone+`}}}`) == nil {
			t.Errorf("a zone with %s is valid", zone)
		}
	}
}
