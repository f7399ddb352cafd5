package cases_test

import (
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/cases"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// recipes returns the case file of each recipe, and its Caddyfile.
func recipes(t *testing.T) iter.Seq2[*cases.File, string] {
	t.Helper()
	files, err := filepath.Glob("../../../examples/recipes/*/Caddyfile.test")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d recipes, %v", len(files), err)
	}
	return func(yield func(*cases.File, string) bool) {
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			f, err := cases.Parse(name, text)
			if err != nil {
				t.Fatal(err)
			}
			caddyfile, err := os.ReadFile(strings.TrimSuffix(name, cases.Extension))
			if err != nil {
				t.Fatal(err)
			}
			if !yield(f, string(caddyfile)) {
				return
			}
		}
	}
}

// TestRecipesHold: each recipe in examples/recipes is on a page, or docs/recipes.md links to it. Its cases hold, and in deep
// tests at least 94 % of the changes of its config are noticed. The others are accepted, with a reason.
func TestRecipesHold(t *testing.T) {
	const root = "../../.."
	var docs strings.Builder
	for _, page := range []string{"recipes.md", "costs.md"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		docs.Write(text)
	}
	all := new(cases.Report)
	for f, caddyfile := range recipes(t) {
		linked := "](../examples/recipes/" + filepath.Base(filepath.Dir(f.Name)) + ")"
		if !strings.Contains(docs.String(), "```caddyfile\n"+caddyfile+"```") && !strings.Contains(docs.String(), linked) {
			t.Errorf("the config of %s is not on a page, and none links to it", f.Name)
		}
		config := adapt(t, caddyfile)
		for _, r := range run(t, config, f) {
			for _, failure := range r.Failures {
				t.Errorf("%s:%d: %s: want %s, got %s %q", r.File, failure.Line, failure.Step, failure.Expected, failure.Got, failure.State)
			}
		}
		if !deep.Run() {
			continue
		}
		changes, err := cases.Mutate(config, []*cases.File{f})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			if c.FoundBy == "" && c.Accepted == "" {
				t.Errorf("%s: no case notices %q", f.Name, c.Change)
			}
		}
		all.Changes = append(all.Changes, changes...)
	}
	if found, _ := all.Noticed(); 100*found < 94*len(all.Changes) {
		t.Errorf("%d of %d changes are noticed", found, len(all.Changes))
	}
}
