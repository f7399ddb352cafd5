package caddyratelimit_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestDoctorRepeatsWarnings: while a config runs, doctor says all that was warned of when it was loaded. The configs are
// all those of TestGoldenConfigs that have warnings.
func TestDoctorRepeatsWarnings(t *testing.T) {
	for _, c := range caddytest.ConfigCases(t, "") {
		if !strings.Contains(c.Want, " | warn: ") {
			continue
		}
		config, err := c.JSON()
		if err != nil {
			t.Fatal(err)
		}
		warnings := strings.Split(warned(caddytest.RunConfig(t, caddytest.FreeAddress(t), string(config)).All()), "\n")
		said := caddytest.Admin(t, http.MethodGet, "doctor", "")
		for _, text := range warnings {
			found, fix := advice.Split(text)
			for _, part := range []string{found, fix.String()} {
				if quoted, _ := json.Marshal(part); !strings.Contains(said, strings.Trim(string(quoted), `"`)) {
					t.Errorf("%s: %q is missing in %s", c.Name, part, said)
				}
			}
		}
		if len(warnings) < 2 { // the last one is empty
			t.Errorf("%s: no warning", c.Name)
		}
	}
}
