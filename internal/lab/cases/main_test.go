package cases_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"

	_ "github.com/seed-161337e5/caddyratelimit"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/cases"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

// adapt returns the JSON of a Caddyfile.
func adapt(t testing.TB, caddyfile string) []byte {
	t.Helper()
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatalf("%v in\n%s", err, caddyfile)
	}
	return config
}

// parse parses a file of cases.
func parse(t testing.TB, text string) *cases.File {
	t.Helper()
	f, err := cases.Parse("Caddyfile.test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// run carries out cases on a config.
func run(t testing.TB, config []byte, f *cases.File) []cases.Result {
	t.Helper()
	results, err := cases.Run(config, []*cases.File{f})
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// TestReports: what a file of cases finds on a config, in 80 columns. Each golden case is a Caddyfile, a line of ten
// hyphens, the cases, and the report behind another such line.
func TestReports(t *testing.T) {
	for _, c := range golden.Cases(t, "testdata/reports.txtar") {
		t.Run(c.Name, func(t *testing.T) {
			parts := strings.SplitN(c.Text, line, 3)
			if len(parts) < 2 {
				t.Fatal("there is no line of ten hyphens")
			}
			var b bytes.Buffer
			r := cases.Report{Cases: run(t, adapt(t, parts[0]), parse(t, parts[1]))}
			for i := range r.Cases {
				r.Cases[i].Took = 0
				if len(r.Cases[i].Failures) > 0 {
					r.Failed++
				}
			}
			if err := r.WriteText(&b, cases.Width); err != nil {
				t.Fatal(err)
			}
			for text := range strings.SplitSeq(b.String(), "\n") {
				if len([]rune(text)) > cases.Width {
					t.Errorf("more than %d columns: %s", cases.Width, text)
				}
			}
			if strings.HasPrefix(c.Name, "junit") {
				if err := r.WriteJUnit(&b); err != nil {
					t.Fatal(err)
				}
			}
			c.Check(t, parts[0]+line+parts[1]+line+b.String())
		})
	}
}

// TestChanges: each change of a config that --mutate tries, and the case that notices it.
func TestChanges(t *testing.T) {
	for _, c := range golden.Cases(t, "testdata/changes.txtar") {
		t.Run(c.Name, func(t *testing.T) {
			parts := strings.SplitN(c.Text, line, 3)
			changes, err := cases.Mutate(adapt(t, parts[0]), []*cases.File{parse(t, parts[1])})
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, change := range changes {
				what := "missed"
				if change.FoundBy != "" {
					what = "found by " + change.FoundBy
				} else if change.Accepted != "" {
					what = "accepted: " + change.Accepted
				}
				b.WriteString(change.Change + ": " + what + "\n")
			}
			c.Check(t, parts[0]+line+parts[1]+line+b.String())
		})
	}
}
