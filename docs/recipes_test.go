package docs_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestRecipesInJSON: each recipe can be used in JSON, as the pages say: 'caddy adapt' prints it, without a
// warning. A recipe is formatted as Caddy does it. TestConfigsInTheDocs loads what is printed.
func TestRecipesInJSON(t *testing.T) {
	text, found := read(t, "docs/recipes.md")+read(t, "docs/recipes-api.md"), 0
	for _, match := range fence.FindAllStringSubmatch(text, -1) {
		found++
		config, warnings, err := caddytest.Adapt(match[2])
		if err != nil {
			t.Errorf("%v, warnings %v\n%s", err, warnings, match[2])
		}
		if !bytes.Contains(config, []byte(`"handler":"rate_limit"`)) {
			t.Errorf("the JSON has no limit: %s", config)
		}
		if formatted := string(caddyfile.Format([]byte(match[2]))); strings.TrimSpace(formatted) == "" {
			t.Errorf("cannot be formatted:\n%s", match[2])
		}
	}
	if found < 20 {
		t.Errorf("found only %d recipes", found)
	}
}
