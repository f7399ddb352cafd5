package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestRemovedOptions: a config with an option that was removed says so, in the Caddyfile and in JSON, and the page
// lists the same options.
func TestRemovedOptions(t *testing.T) {
	page, err := os.ReadFile("docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Removed\n")
	section, _, _ = strings.Cut(section, "\n## ")
	listed := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_ ]+)` \\| (.+) \\|$").FindAllStringSubmatch(section, -1) {
		listed[row[1]] = strings.ReplaceAll(row[2], "`", "")
	}
	for name, instead := range option.Removed {
		if listed[name] != instead {
			t.Errorf("the page says of %s: %q, and the error %q", name, listed[name], instead)
		}
		want := `"` + name + `" was removed: ` + instead + " (docs/compatibility.md#removed)"
		if _, _, err := caddytest.Adapt(":80 {\nrate_limit {\nzone app {\nrate 1/1s\n" + name + " x\n}\n}\n}\n"); err == nil || !strings.Contains(err.Error(), "zone app: "+want) {
			t.Errorf("Caddyfile: got %v, want %s", err, want)
		}
		_, err := caddytest.TryLoad(caddytest.Config(t), `{"rate_limits": {"app": {"max_events": 1, "window": "1s", "`+name+`": "x"}}}`)
		if err == nil || !strings.Contains(err.Error(), `zone "app": `+want) {
			t.Errorf("JSON: got %v, want %s", err, want)
		}
	}
	of := `"answers" was removed: ` + option.Removed["answers"]
	if _, _, err := caddytest.Adapt(":80 {\nrate_limit {\nanswers html\n}\n}\n"); err == nil || !strings.Contains(err.Error(), of) {
		t.Errorf("in rate_limit: got %v", err)
	}
	if _, err := caddytest.TryLoad(caddytest.Config(t), `{"answers": ["html"]}`); err == nil || !strings.Contains(err.Error(), of) {
		t.Errorf("in the JSON of rate_limit: got %v", err)
	}
	inCharge := ":80 {\nrate_limit {\nzone app {\nrate 1/1s\ncharge {\ncost_header X-Cost\n}\n}\n}\n}\n"
	if _, _, err := caddytest.Adapt(inCharge); err == nil || !strings.Contains(err.Error(), `charge: "cost_header" was removed: `) {
		t.Errorf("in the block of an option: got %v", err)
	}
	if len(listed) != len(option.Removed) {
		t.Errorf("the page lists %d options, and there are %d", len(listed), len(option.Removed))
	}
}
