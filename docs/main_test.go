// Package docs_test tests what users read: the pages, the examples, the changelog, and the notes for contributors.
package docs_test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain lets all tests begin at the root of the repository, as the paths in pages do.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
