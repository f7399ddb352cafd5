package cases_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/cases"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

const line = "----------\n"

// TestBrokenFiles: a file that cannot be read is an error with the file, the line, and what was expected. Each golden
// file is a file of cases, a line of ten hyphens, and the error.
func TestBrokenFiles(t *testing.T) {
	for _, c := range golden.Cases(t, "testdata/broken.txtar") {
		text, _, _ := strings.Cut(c.Text, line)
		f, err := cases.Parse("Caddyfile.test", []byte(text))
		if err == nil {
			t.Errorf("%s: %+v", c.Name, f)
		}
		c.Check(t, text+line+fmt.Sprintln(err))
	}
}
