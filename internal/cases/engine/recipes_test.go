package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/admin"
	"github.com/seed-161337e5/caddyratelimit/internal/cases"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// TestRecipesHold: each recipe in examples/recipes is that of the docs, its cases hold, and in deep tests at least 95 % of
// the changes of its config are noticed. The others are accepted, with a reason.
func TestRecipesHold(t *testing.T) {
	const root = "../../.."
	var docs strings.Builder
	for _, page := range []string{"recipes.md", "recipes-api.md", "agents.md", "headers.md"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		docs.Write(text)
	}
	files, err := filepath.Glob(filepath.Join(root, "examples/recipes/*/Caddyfile.test"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no recipes: %v", err)
	}
	all := new(cases.Report)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := cases.Parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		caddyfile, err := os.ReadFile(f.ConfigOf())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(docs.String(), "```caddyfile\n"+string(caddyfile)+"```") {
			t.Errorf("%s is not that of the docs", f.ConfigOf())
		}
		config := adapt(t, string(caddyfile))
		for _, r := range run(t, config, f) {
			for _, failure := range r.Failures {
				t.Errorf("%s:%d: %s: want %s, got %s %q", r.File, failure.Line, failure.Step, failure.Expected, failure.Got, failure.State)
			}
		}
		if !deep.Run() {
			continue
		}
		changes, err := admin.AdminAPI{}.TryChanges(config, []*cases.File{f}, new(cases.Options))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			if c.FoundBy == "" && c.Accepted == "" {
				t.Errorf("%s: no case notices %q", name, c.Change)
			}
		}
		all.Changes = append(all.Changes, changes...)
	}
	if found, _ := all.Noticed(); 100*found < 95*len(all.Changes) {
		t.Errorf("%d of %d changes are noticed", found, len(all.Changes))
	}
}
