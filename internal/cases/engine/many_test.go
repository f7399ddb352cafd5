package engine_test

import (
	"fmt"
	"strings"
	"testing"
)

// manyCases are n cases, each with some requests.
func manyCases(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "case \"%d\" {\n\tGET / repeat 11 pass 10 by clients\n\tafter 1m\n\tGET / from 203.0.113.%d\n}\n", i, i%250)
	}
	return b.String()
}

const manyZones = `:8080 {
	rate_limit {
		zone clients {
			key {client_ip}
			rate 10/1m
		}
		zone all {
			rate 1000/1s
		}
		zone paths {
			key {path}
			algorithm token_bucket 100/1m
		}
	}
}
`

// TestCasesAreAlone: no case has anything of one before.
func TestCasesAreAlone(t *testing.T) {
	for _, r := range run(t, adapt(t, manyZones), parse(t, manyCases(100))) {
		if len(r.Failures) > 0 {
			t.Fatalf("%+v", r)
		}
	}
}
