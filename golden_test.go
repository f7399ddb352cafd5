package caddyratelimit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
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

const separator = "\n----------\n"

// secrets are in every secret of the golden cases. No result may have one.
var secrets = []string{"s3cr3t", "hunter2"}

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

// goldenCase is a config and its result.
type goldenCase struct {
	golden.Case
	input, want string
}

// goldens reads the cases of the archives that match a pattern below testdata.
func goldens(t *testing.T, pattern string) (all []goldenCase) {
	t.Helper()
	for _, c := range golden.Cases(t, "testdata/"+pattern) {
		input, want, found := strings.Cut(c.Text, separator)
		if !found && !golden.Updating() {
			t.Errorf("%s: no line of ten hyphens", c)
		}
		all = append(all, goldenCase{c, strings.TrimSuffix(input, "\n") + "\n", strings.TrimSpace(want)})
	}
	return all
}

// config is the config of a case in testdata/load.
func (g goldenCase) config(t *testing.T) []byte {
	t.Helper()
	config := configOf(g.input)
	if !json.Valid(config) {
		var err error
		if config, _, err = caddytest.Adapt(g.input); err != nil {
			t.Fatal(err)
		}
	}
	return config
}

// configOf puts a handler in JSON into a config.
func configOf(handler string) []byte {
	return fmt.Appendf(nil, `{"apps":{"http":{"servers":{"srv0":{"listen":[":8080"],"routes":[{"handle":[%s]}]}}}}}`, handler)
}

// check compares the result.
func (g goldenCase) check(t *testing.T, got string) {
	t.Helper()
	if got != g.want {
		g.Check(t, g.input[:len(g.input)-1]+separator+got+"\n")
	}
}

// checkError compares an error, which must not have a secret.
func (g goldenCase) checkError(t *testing.T, got string) {
	t.Helper()
	g.check(t, got)
	for _, secret := range secrets {
		if strings.Contains(got, secret) {
			t.Errorf("%s: the error has a secret: %s", g, got)
		}
	}
}

// TestGoldenAdapt: the Caddyfiles of testdata/adapt have this JSON, and it loads.
func TestGoldenAdapt(t *testing.T) {
	for _, g := range goldens(t, "adapt/*.txtar") {
		t.Run(g.Name, func(t *testing.T) {
			config, warnings, err := caddytest.Adapt(g.input)
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
			g.check(t, pretty.String())
			if !strings.Contains(g.input, " /etc/") { // it names files that do not exist here
				if got := caddytest.ValidateJSON(t, config); !strings.HasPrefix(got, "ok") {
					t.Errorf("%s does not load: %s", g, got)
				}
			}
		})
	}
}

// TestGoldenErrors: the Caddyfiles of testdata/errors do not adapt, with this error.
func TestGoldenErrors(t *testing.T) {
	for _, g := range goldens(t, "errors/*.txtar") {
		t.Run(g.Name, func(t *testing.T) {
			_, _, err := caddytest.Adapt(g.input)
			if err == nil {
				t.Fatalf("%s adapts, want an error", g)
			}
			g.checkError(t, err.Error())
		})
	}
}

// TestGoldenLoad: loading the configs of testdata/load gives this error, or these warnings.
func TestGoldenLoad(t *testing.T) {
	for _, g := range goldens(t, "load/*.txtar") {
		t.Run(g.Name, func(t *testing.T) {
			g.checkError(t, caddytest.ValidateJSON(t, g.config(t)))
		})
	}
}

// blocks are the Caddyfile blocks that have options. Each has an unknown option here, so that the
// error lists the known ones.
var blocks = map[string]string{
	"directive":     ":80 {\n\trate_limit {\n\t\t?\n\t}\n}\n",
	"reserve":       ":80 {\n\trate_limit {\n\t\tzone z {\n\t\t\treserve 10% {\n\t\t\t\t?\n\t\t\t}\n\t\t}\n\t}\n}\n",
	"distributed":   ":80 {\n\trate_limit {\n\t\tdistributed {\n\t\t\t?\n\t\t}\n\t}\n}\n",
	"global":        "{\n\trate_limit {\n\t\t?\n\t}\n}\n",
	"zone":          ":80 {\n\trate_limit {\n\t\tzone z {\n\t\t\t?\n\t\t}\n\t}\n}\n",
	"plan":          ":80 {\n\trate_limit {\n\t\tzone z {\n\t\t\tplan {x} {\n\t\t\t\tp {\n\t\t\t\t\t?\n\t\t\t\t}\n\t\t\t}\n\t\t}\n\t}\n}\n",
	"charge":        ":80 {\n\trate_limit {\n\t\tzone z {\n\t\t\tcharge on_response {\n\t\t\t\t?\n\t\t\t}\n\t\t}\n\t}\n}\n",
	"cost_request":  ":80 {\n\trate_limit {\n\t\tzone z {\n\t\t\tcost_request json x {\n\t\t\t\t?\n\t\t\t}\n\t\t}\n\t}\n}\n",
	"cost_response": ":80 {\n\trate_limit {\n\t\tzone z {\n\t\t\tcost_response json x {\n\t\t\t\t?\n\t\t\t}\n\t\t}\n\t}\n}\n",
	"store memory":  ":80 {\n\trate_limit {\n\t\tstore memory {\n\t\t\t?\n\t\t}\n\t}\n}\n",
	"store redis":   ":80 {\n\trate_limit {\n\t\tstore redis {\n\t\t\t?\n\t\t}\n\t}\n}\n",
	"tls":           ":80 {\n\trate_limit {\n\t\tstore redis {\n\t\t\ttls {\n\t\t\t\t?\n\t\t\t}\n\t\t}\n\t}\n}\n",
}

// TestGoldenOptions: every option is in a golden case, and there is one for the error that it was
// given twice.
func TestGoldenOptions(t *testing.T) {
	adapted, twice := make(map[use]bool), make(map[use]bool)
	for _, g := range goldens(t, "adapt/*.txtar") {
		for u, times := range uses(t, g.input) {
			u.instance = 0
			adapted[u] = true
			twice[u] = twice[u] || times > 1
		}
	}
	for _, g := range goldens(t, "errors/*.txtar") {
		for u, times := range uses(t, g.input) {
			u.instance = 0
			twice[u] = twice[u] || times > 1 && strings.Contains(g.want, " already specified")
		}
	}
	for block, text := range blocks {
		_, _, err := caddytest.Adapt(text)
		_, list, found := strings.Cut(fmt.Sprint(err), "must be one of ")
		if !found {
			t.Fatalf("%s does not list its options: %v", block, err)
		}
		list, _, _ = strings.Cut(list, ", at ")
		for option := range strings.SplitSeq(list, ", ") {
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
	case (name == "zone" || name == "distributed") && around == "directive", (name == "charge" || name == "cost_response" || name == "cost_request" || name == "reserve") && around == "zone", name == "tls" && around == "store redis":
		return name
	}
	return "other"
}
