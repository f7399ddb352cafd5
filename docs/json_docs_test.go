package docs_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit"
	"github.com/seed-161337e5/caddyratelimit/adaptive"
	"github.com/seed-161337e5/caddyratelimit/backend"
	"github.com/seed-161337e5/caddyratelimit/cost"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/jsondoc"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

const (
	jsonPage   = "docs/json.md"
	jsonSchema = "docs/rate-limit.schema.json"
)

// jsonDocs is the configuration in JSON.
func jsonDocs() *jsondoc.Docs {
	placeholder := `^\{[^{}]+\}`
	return &jsondoc.Docs{
		Source: jsondoc.Source{Module: "github.com/seed-161337e5/caddyratelimit", Dir: "."},
		Sections: []jsondoc.Section{
			{ID: "handler", Title: "The handler", Subj: "The handler", At: "In any list of handlers.", Type: reflect.TypeFor[caddyratelimit.Handler](), Inline: [2]string{"handler", "rate_limit"}},
			{ID: "zone", Title: "A zone", Subj: "A zone", At: "It is `rate_limits.<name>` of the handler.", Type: reflect.TypeFor[caddyratelimit.Zone]()},
			{ID: "limit", Title: "A limit", Subj: "A limit", At: "These fields are those of a zone, and of a plan of a zone.", Type: reflect.TypeFor[limit.Limit]()},
			{ID: "plans", Title: "Plans", Subj: "Plans", At: "It is `plan` of a zone.", Type: reflect.TypeFor[limit.Plans]()},
			{ID: "plan", Title: "A plan", Subj: "A plan", At: "It is `plan.plans.<name>` of a zone.", Type: reflect.TypeFor[limit.Plan]()},
			{ID: "cost_request", Title: "Costs in requests", Subj: "This object", At: "It is `cost_request` of a zone.", Type: reflect.TypeFor[cost.Request]()},
			{ID: "cost_response", Title: "Costs in responses", Subj: "This object", At: "It is `cost_response` of a zone.", Type: reflect.TypeFor[cost.Response]()},
			{
				ID: "charge_on_response", Title: "Responses that count", At: "It is `charge_on_response` of a zone.", Type: reflect.TypeFor[caddyhttp.ResponseMatcher](),
				Comments: map[string]string{
					"StatusCode": "The statuses that count, from 1 to 599; a digit is a class, such as 5 for 5xx. Default: all statuses.",
					"Headers":    "The headers that a response must have, each with one of these values; `*` is any value. Default: none.",
				},
			},
			{ID: "ban", Title: "A ban", Subj: "A ban", At: "It is `ban` of a zone.", Type: reflect.TypeFor[caddyratelimit.Ban]()},
			{ID: "memory", Title: "The store memory", Subj: "The store", At: "It is `store` of the handler.", Type: reflect.TypeFor[backend.MemoryStore](), Inline: [2]string{"backend", "memory"}},
			{ID: "redis", Title: "The store redis", Subj: "The store", At: "It is `store` of the handler.", Type: reflect.TypeFor[backend.RedisStore](), Inline: [2]string{"backend", "redis"}, Replaced: true},
			{ID: "tls", Title: "TLS to Redis", Subj: "This object", At: "It is `tls` of the store redis.", Type: reflect.TypeFor[backend.RedisTLS]()},
			{ID: "distributed", Title: "Distributed", Subj: "This object", At: "It is `distributed` of the handler.", Type: reflect.TypeFor[caddyratelimit.Distributed]()},
			{ID: "adaptive", Title: "The handler adaptive_concurrency", Subj: "The handler", At: "In any list of handlers.", Type: reflect.TypeFor[adaptive.Handler](), Inline: [2]string{"handler", "adaptive_concurrency"}},
			{ID: "priority", Title: "A priority", Subj: "A priority", At: "It is `priority` of the handler adaptive_concurrency.", Type: reflect.TypeFor[adaptive.Priority]()},
			{ID: "rate_limit", Title: "The app", Subj: "The app", At: "It is `apps.rate_limit`.", Type: reflect.TypeFor[caddyratelimit.App]()},
		},
		Values: []jsondoc.Value{
			{
				ID: "amount", Title: "Amount", Subj: "An amount", Type: reflect.TypeFor[limit.Amount](),
				Text: map[string]any{"type": "string", "pattern": placeholder + ` *(\+?[0-9]+)? *$`},
			},
			{
				ID: "window", Title: "Window", Subj: "A window", Type: reflect.TypeFor[limit.Window](), Unit: "duration",
				Text: map[string]any{"anyOf": []any{
					map[string]any{"enum": []string{"day", "week", "month", "year"}},
					map[string]any{"type": "string", "pattern": jsondoc.DurationPattern},
					map[string]any{"type": "string", "pattern": placeholder},
				}},
			},
			{
				ID: "fallback", Title: "Fallback", Subj: "A fallback", Type: reflect.TypeFor[cost.Fallback](),
				Text: map[string]any{"anyOf": []any{
					map[string]any{"enum": []string{"booked", "counted"}},
					map[string]any{"type": "string", "pattern": `^(counted\*[0-9.]+|[0-9]+)$`},
				}},
			},
		},
	}
}

// TestJSONDocs: the page and the schema are what the comments of the structs say.
func TestJSONDocs(t *testing.T) {
	docs := jsonDocs()
	tables, err := docs.Page()
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- from the comments in the code: make docs -->\n", "<!-- end -->\n"
	page := read(t, jsonPage)
	before, rest, found := strings.Cut(page, begin)
	_, after, found2 := strings.Cut(rest, end)
	if !found || !found2 {
		t.Fatalf("%s lacks the line %q or %q", jsonPage, begin, end)
	}
	generated(t, jsonPage, []byte(before+begin+"\n"+tables+end+after))
	last := len(docs.Sections) - 1
	schema, err := docs.Schema("https://raw.githubusercontent.com/seed-161337e5/caddyratelimit/main/"+jsonSchema,
		"Configs of Caddy with rate_limit", &docs.Sections[last], &docs.Sections[last-2], &docs.Sections[0])
	if err != nil {
		t.Fatal(err)
	}
	generated(t, jsonSchema, schema)
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
		t.Errorf("%s is not what the comments in the code say: run make docs", file)
	}
}
