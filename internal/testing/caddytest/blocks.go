package caddytest

import (
	"fmt"
	"strings"
	"testing"
)

// Blocks are the Caddyfile blocks that have options. Each has an unknown option here, so that the
// error lists the known ones.
var Blocks = map[string]string{
	"directive":            ":80 {\n\trate_limit {\n\t\t?\n\t}\n}\n",
	"distributed":          ":80 {\n\trate_limit {\n\t\tdistributed {\n\t\t\t?\n\t\t}\n\t}\n}\n",
	"global":               "{\n\trate_limit {\n\t\t?\n\t}\n}\n",
	"zone":                 ":80 {\n\trate_limit {\n\t\tzone z {\n\t\t\t?\n\t\t}\n\t}\n}\n",
	"plan":                 ":80 {\n\trate_limit {\n\t\tzone z {\n\t\t\tplan {x} {\n\t\t\t\tp {\n\t\t\t\t\t?\n\t\t\t\t}\n\t\t\t}\n\t\t}\n\t}\n}\n",
	"charge":               ":80 {\n\trate_limit {\n\t\tzone z {\n\t\t\tcharge on_response {\n\t\t\t\t?\n\t\t\t}\n\t\t}\n\t}\n}\n",
	"cost_request":         ":80 {\n\trate_limit {\n\t\tzone z {\n\t\t\tcost_request json x {\n\t\t\t\t?\n\t\t\t}\n\t\t}\n\t}\n}\n",
	"cost_response":        ":80 {\n\trate_limit {\n\t\tzone z {\n\t\t\tcost_response json x {\n\t\t\t\t?\n\t\t\t}\n\t\t}\n\t}\n}\n",
	"store memory":         ":80 {\n\trate_limit {\n\t\tstore memory {\n\t\t\t?\n\t\t}\n\t}\n}\n",
	"store redis":          ":80 {\n\trate_limit {\n\t\tstore redis {\n\t\t\t?\n\t\t}\n\t}\n}\n",
	"adaptive_concurrency": ":80 {\n\tadaptive_concurrency {\n\t\t?\n\t}\n}\n",
	"tls":                  ":80 {\n\trate_limit {\n\t\tstore redis {\n\t\t\ttls {\n\t\t\t\t?\n\t\t\t}\n\t\t}\n\t}\n}\n",
}

// Options returns the options that the parser accepts in a block.
func Options(t testing.TB, block string) []string {
	t.Helper()
	_, _, err := Adapt(Blocks[block])
	_, list, found := strings.Cut(fmt.Sprint(err), "must be one of ")
	if !found {
		t.Fatalf("%s does not list its options: %v", block, err)
	}
	list, _, _ = strings.Cut(list, ", at ")
	return strings.Split(list, ", ")
}
