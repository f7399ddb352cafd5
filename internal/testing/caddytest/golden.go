package caddytest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

// separator is between a config and its result.
const separator = "\n----------\n"

// Golden is a golden case: a config, a line of ten hyphens, and the result.
type Golden struct {
	golden.Case
	Input, Want string
}

// Goldens reads the cases of the archives that match a pattern.
func Goldens(t testing.TB, pattern string) (all []Golden) {
	t.Helper()
	for _, c := range golden.Cases(t, pattern) {
		input, want, found := strings.Cut(c.Text, separator)
		if !found && !golden.Updating() {
			t.Errorf("%s: no line of ten hyphens", c)
		}
		all = append(all, Golden{c, strings.TrimSuffix(input, "\n") + "\n", strings.TrimSpace(want)})
	}
	return all
}

// Config is the input as a config: it is a Caddyfile, or the JSON of a handler.
func (g Golden) Config(t testing.TB) []byte {
	t.Helper()
	config := ConfigOf(g.Input)
	if !json.Valid(config) {
		var err error
		if config, _, err = Adapt(g.Input); err != nil {
			t.Fatal(err)
		}
	}
	return config
}

// ConfigOf puts a handler in JSON into a config.
func ConfigOf(handler string) []byte {
	return fmt.Appendf(nil, `{"apps":{"http":{"servers":{"srv0":{"listen":[":8080"],"routes":[{"handle":[%s]}]}}}}}`, handler)
}

// Check compares the result.
func (g Golden) Check(t testing.TB, got string) {
	t.Helper()
	if got != g.Want {
		g.Case.Check(t, g.Input[:len(g.Input)-1]+separator+got+"\n")
	}
}
