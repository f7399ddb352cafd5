package caddyratelimit_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	_ "github.com/seed-161337e5/caddyratelimit"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

// A golden case has a config, a line of ten hyphens, and the result:
//
//	testdata/adapt   a Caddyfile, and its JSON; the JSON also loads
//	testdata/errors  a Caddyfile that does not adapt, and the error
//	testdata/load    a Caddyfile or the JSON of a handler, and the error when it is loaded,
//	                 or ok and the warnings in the log
//
// With UPDATE_GOLDEN=1, the tests write the results.

// secrets are in every secret of the golden cases. No result may have one.
var secrets = []string{"s3cr3t", "hunter2"}

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

// checkError compares an error, which must not have a secret.
func checkError(t *testing.T, g caddytest.Golden, got string) {
	t.Helper()
	g.Check(t, got)
	for _, secret := range secrets {
		if strings.Contains(got, secret) {
			t.Errorf("%s: the error has a secret: %s", g, got)
		}
	}
}

// TestGoldenAdapt: the Caddyfiles of testdata/adapt have this JSON, and it loads.
func TestGoldenAdapt(t *testing.T) {
	for _, g := range caddytest.Goldens(t, "testdata/adapt/*.txtar") {
		t.Run(g.Name, func(t *testing.T) {
			config, warnings, err := caddytest.Adapt(g.Input)
			if err != nil {
				t.Fatal(err)
			}
			for _, warning := range warnings {
				t.Errorf("warning: %s", warning)
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, config, "", "\t"); err != nil {
				t.Fatal(err)
			}
			g.Check(t, pretty.String())
			if !strings.Contains(g.Input, " /etc/") { // it names files that do not exist here
				if got := caddytest.ValidateJSON(t, config); !strings.HasPrefix(got, "ok") {
					t.Errorf("%s does not load: %s", g, got)
				}
			}
		})
	}
}

// TestGoldenErrors: the Caddyfiles of testdata/errors do not adapt, with this error.
func TestGoldenErrors(t *testing.T) {
	for _, g := range caddytest.Goldens(t, "testdata/errors/*.txtar") {
		t.Run(g.Name, func(t *testing.T) {
			_, _, err := caddytest.Adapt(g.Input)
			if err == nil {
				t.Fatalf("%s adapts, want an error", g)
			}
			checkError(t, g, err.Error())
		})
	}
}

// TestGoldenLoad: loading the configs of testdata/load gives this error, or these warnings.
func TestGoldenLoad(t *testing.T) {
	for _, g := range caddytest.Goldens(t, "testdata/load/*.txtar") {
		t.Run(g.Name, func(t *testing.T) {
			checkError(t, g, caddytest.ValidateJSON(t, g.Config(t)))
		})
	}
}

// TestGoldenOptions: every option is in a golden case, and there is one for the error that it was
// given twice.
func TestGoldenOptions(t *testing.T) {
	adapted, twice := make(map[use]bool), make(map[use]bool)
	for _, g := range caddytest.Goldens(t, "testdata/adapt/*.txtar") {
		for u, times := range uses(t, g.Input) {
			u.instance = 0
			adapted[u] = true
			twice[u] = twice[u] || times > 1
		}
	}
	for _, g := range caddytest.Goldens(t, "testdata/errors/*.txtar") {
		for u, times := range uses(t, g.Input) {
			u.instance = 0
			twice[u] = twice[u] || times > 1 && strings.Contains(g.Want, " already specified")
		}
	}
	for block := range caddytest.Blocks {
		for _, option := range caddytest.Options(t, block) {
			u := use{block: block, option: option}
			if !adapted[u] {
				t.Errorf("option %s of %s is in no case of testdata/adapt", option, block)
			}
			if !twice[u] {
				t.Errorf("option %s of %s is given twice in no case of testdata/errors", option, block)
			}
		}
	}
}

// use is an option in a block of a Caddyfile.
type use struct {
	block, option string
	instance      int // the number of the block, from the top of the file
}

// uses counts the options in the blocks of a Caddyfile.
func uses(t *testing.T, text string) map[use]int {
	t.Helper()
	tokens, err := caddyfile.Tokenize([]byte(text), "Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[use]int)
	open := []use{{}} // the open blocks, outermost first
	for opened := 0; len(tokens) > 0; {
		end := 1
		for end < len(tokens) && tokens[end].Line == tokens[0].Line {
			end++
		}
		line := tokens[:end]
		tokens = tokens[end:]
		if line[0].Text == "}" && len(open) > 1 {
			open = open[:len(open)-1]
			continue
		}
		u := use{block: open[len(open)-1].block, option: line[0].Text, instance: open[len(open)-1].instance}
		found[u]++
		if line[len(line)-1].Text == "{" {
			opened++
			open = append(open, use{block: blockOf(u.block, line), instance: opened})
		}
	}
	return found
}

// blockOf names the block that a line opens.
func blockOf(around string, line []caddyfile.Token) string {
	switch name := line[0].Text; {
	case name == "{":
		return "global options"
	case name == "rate_limit" && around == "global options":
		return "global"
	case name == "rate_limit":
		return "directive"
	case name == "store" && len(line) > 1:
		return "store " + line[1].Text
	case name == "plan" && around == "zone":
		return "plans"
	case around == "plans":
		return "plan"
	case (name == "zone" || name == "distributed") && around == "directive", (name == "charge" || name == "cost_response" || name == "cost_request") && around == "zone", name == "tls" && around == "store redis":
		return name
	}
	return "other"
}
