package docs_test

import (
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestRemovedOptions: a config with an option that was removed says so, in the Caddyfile and in JSON.
func TestRemovedOptions(t *testing.T) {
	for name, instead := range option.Removed {
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
}
